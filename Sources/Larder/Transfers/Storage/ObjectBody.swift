package import LarderFiles

/// The bytes of an object or of a part of one, read when they are sent.
public struct ObjectBody: Sendable {
    /// How many bytes there are.
    public let size: Int64
    /// Fills the buffer with the bytes from an offset on. Throws where they cannot be read, or are not the same any
    /// more. May be called again for bytes that were read before: an exchange may have to be repeated.
    public let read: @Sendable (_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Void
    /// Waited for before so many further bytes are sent. Throws to end the exchange.
    public let pace: @Sendable (_ count: Int) async throws -> Void
    /// Where else the bytes are, for a transport that can send them from there. They are read all the same, each before
    /// it is sent.
    package var file: FileSegment?
    /// How many bytes `pace` should be asked for at most at a time, so that other bodies have their turns; nil for any
    /// number.
    public var turn: Int?

    /// Bytes that are read by a closure.
    public init(
        size: Int64,
        read: @escaping @Sendable (_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Void,
        pace: @escaping @Sendable (_ count: Int) async throws -> Void = { _ in }
    ) {
        self.size = size
        self.read = read
        self.pace = pace
    }
}

/// The bytes of a body in a file.
package struct FileSegment: Sendable {
    /// Open for as long as `owner` is kept.
    package let descriptor: Int32
    /// In bytes from the file's beginning.
    package let offset: Int64
    private let owner: any Sendable

    package let files: FileSystem

    package init(descriptor: Int32, offset: Int64, owner: any Sendable, _ files: FileSystem = FileSystem()) {
        (self.descriptor, self.offset, self.owner, self.files) = (descriptor, offset, owner, files)
    }
}

/// Where the bytes of an object go.
public struct ObjectSink: Sendable {
    /// Takes bytes at an offset of the object. Throws to end the exchange. Offsets ascend without gaps within an
    /// exchange.
    public let write: @Sendable (_ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws -> Void
    /// Waited for before so many further bytes are written. Throws to end the exchange.
    public let pace: @Sendable (_ count: Int) async throws -> Void

    /// A sink of these closures.
    public init(
        write: @escaping @Sendable (_ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws -> Void,
        pace: @escaping @Sendable (_ count: Int) async throws -> Void = { _ in }
    ) {
        self.write = write
        self.pace = pace
    }
}

import Foundation

/// The smallest stack of any thread on the platforms that are supported.
package let smallestStack = 512 << 10

/// How many bytes of stack `body` takes on a thread of its own, to a page.
///
/// The thread has a hundred times the smallest stack, so that what takes too much is told and does not crash.
package func stackUse(of body: @escaping () throws -> Void) throws -> Int {
    let size = 128 * smallestStack
    guard let stack = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        stack != UnsafeMutableRawPointer(bitPattern: -1)
    else {
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .ENOMEM)
    }
    defer { munmap(stack, size) }
    let work = StackWork(body)
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstack(&attributes, stack, size)
    #if canImport(Darwin)
    var thread: pthread_t?
    let status = pthread_create(
        &thread, &attributes,
        { work in
            Unmanaged<StackWork>.fromOpaque(work).takeUnretainedValue().run()
            return nil
        }, Unmanaged.passUnretained(work).toOpaque())
    guard status == 0, let thread else { throw POSIXError(POSIXErrorCode(rawValue: status) ?? .EAGAIN) }
    #else
    var thread = pthread_t()
    let status = pthread_create(
        &thread, &attributes,
        { work in
            if let work { Unmanaged<StackWork>.fromOpaque(work).takeUnretainedValue().run() }
            return nil
        }, Unmanaged.passUnretained(work).toOpaque())
    guard status == 0 else { throw POSIXError(POSIXErrorCode(rawValue: status) ?? .EAGAIN) }
    #endif
    pthread_join(thread, nil)
    if let error = work.error { throw error }
    return size - untouched(UnsafeRawPointer(stack), size)
}

/// How many bytes from the start on are zero, in whole pages: a stack grows downwards.
private func untouched(_ stack: UnsafeRawPointer, _ size: Int) -> Int {
    let page = 4096
    let zeros = [UInt8](repeating: 0, count: page)
    var offset = 0
    while offset < size, zeros.withUnsafeBytes({ memcmp(stack + offset, $0.baseAddress ?? stack, page) }) == 0 {
        offset += page
    }
    return offset
}

/// Unchecked: the thread that made it waits while the other uses it.
private final class StackWork: @unchecked Sendable {
    private let body: () throws -> Void
    private(set) var error: (any Error)?

    init(_ body: @escaping () throws -> Void) { self.body = body }

    func run() {
        do { try body() } catch { self.error = error }
    }
}

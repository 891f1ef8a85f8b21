import LarderFiles
import LarderLMDB

/// The folder of one partition's record cache, in whatever format and state, for work on the cache as a whole.
///
/// Not for a process that has the cache open: each call opens the files for itself.
package struct CacheFolder: Sendable {
    let folder: GenerationFolder
    let steps: [FormatStep]

    /// - Parameter stamp: What the cache belongs to: the partition's name.
    package init(path: String, stamp: String, options: RecordCache.Options = RecordCache.Options()) {
        self.init(path: path, stamp: stamp, options: options, steps: FormatStep.all)
    }

    /// - Parameter steps: Others than the library's, for tests.
    init(path: String, stamp: String, options: RecordCache.Options, steps: [FormatStep]) {
        folder = GenerationFolder(path: path, stamp: stamp, options: options)
        self.steps = steps
    }

    package var path: String { folder.path }
    var files: FileSystem { folder.options.files }

    /// Whether a cache of this format keeps what it knows when it is migrated.
    package func isTransformed(from format: UInt32) -> Bool { FormatStep.path(from: format, in: steps) != nil }

    /// Looks at the mark of the current generation. Writes nothing but the locks.
    ///
    /// - Throws: What keeps it from looking: `.busy`, `.notWritable`, `.alreadyOpen`.
    package func format() throws(RecordError) -> CacheFormat {
        try translated {
            let numbers = try folder.numbers()
            for number in numbers {
                var format = CacheFormat(generation: number, state: .absent, byteCount: byteCount(number))
                // Below another one it was being removed when the power went.
                if try !files.exists(folder.path(of: number) + "/data.mdb") {
                    guard number == numbers.last else { continue }
                    format.state = .damaged("it has no data file")
                    return format
                }
                do {
                    let mark = try folder.mark(number)
                    if mark.isSuperseded { continue }
                    format.state =
                        switch mark.format {
                        case CacheFormat.current: .current
                        case ..<CacheFormat.current: .older(mark.format)
                        default: .newer(mark.format)
                        }
                } catch {
                    guard let reason = Self.damage(error) else { throw error }
                    format.state = .damaged(reason)
                }
                return format
            }
            return CacheFormat(generation: numbers.last ?? 0, state: .absent)
        }
    }

    private func byteCount(_ number: Int) -> Int {
        let file = folder.path(of: number) + "/data.mdb"
        return Int(clamping: ((try? files.status(of: file)) ?? nil)?.size ?? 0)
    }

    /// What is wrong with a file, where an error says so; nil for an error that says nothing of the file.
    static func damage(_ error: any Error) -> String? {
        let error = RecordError.translated(error)
        if error.code == .damaged { return error.message }
        // What belongs to another partition is of as little use; so is a folder without its tables.
        return [.missing, .otherPartition].contains(error.code) ? error.message : nil
    }
}

import Foundation
import LarderFiles
import LarderGraphQL
import LarderRecords
import Synchronization

/// Writes to a record cache and stamps it in turns, and kills the program before one of the system's calls.
struct Stamping {
    static let schema = "type Query { number: Int }"
    let folder: URL

    /// Says which numbers were written, and when the file was stamped. Ends without closing the cache.
    ///
    /// - Parameter last: The call that is not made any more, counted from the first after the cache was opened.
    func run(killedBefore last: Int) async throws {
        let (isOpen, calls) = (Flag(), Flag())
        var options = RecordCache.Options()
        options.idleDelay = .seconds(3600)
        options.files = FileSystem { _ in
            if isOpen.count > 0, calls.add() == last {
                kill(getpid(), SIGKILL)
                sleep(3600)
            }
            return nil
        }
        let operation = try CompiledOperation(
            operation: nil, in: Document(parsing: "{ number }"), SchemaIndex(parsing: Self.schema)
        ).bound()
        let cache = try RecordCache(folder: folder.path, stamp: "stamping", options: options)
        let known = try cache.read(operation).response["number"]?.int ?? 0
        isOpen.add()
        for number in (known + 1)...(known + 3) {
            let body = Array(#"{"data":{"number":\#(number)}}"#.utf8)
            _ = try await cache.write(try ParsedResponse.parse(body, along: operation.layout), of: operation)
            say("wrote \(number)")
            try await cache.stamp()
            say("stamped")
        }
        exit(0)
    }

    private final class Flag: Sendable {
        private let number = Atomic(0)
        var count: Int { number.load(ordering: .relaxed) }
        @discardableResult func add() -> Int { number.add(1, ordering: .relaxed).newValue }
    }
}

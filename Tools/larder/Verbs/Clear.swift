import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Clear: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Removes everything that the store knows. Wants --write.",
        discussion: """
            Disk space is given back. Programs that have the store open go on with the empty one. It is refused while \
            there are mutations or uploads that the server may not have, unless --unsent says what becomes of them.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var permission: WritePermission
    @Option(help: "What becomes of mutations and uploads that were not sent, or were set aside: refuse, keep, discard.")
    var unsent = UnsentWork.refuse

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        try permission.require(for: "clearing the store")
        try await folder.settle(unsent)
        let before = try folder.byteCount
        // How much a damaged cache held is unknown; that is no reason to keep it.
        let removed: Int
        do {
            removed = try await folder.withCache(.writing, output) { cache in
                let statistics = try? cache.inspect.statistics()
                try await cache.clear()
                return statistics?.entries(of: "records") ?? 0
            }
        } catch let error where Failure(error).exit == .damaged {
            try folder.replaceCache()
            removed = 0
        }
        var written = Written(bytesBefore: before, bytesAfter: try folder.byteCount)
        written.records.removed = removed
        try output.result(.object([("written", written.json)]), text: written.text)
    }
}

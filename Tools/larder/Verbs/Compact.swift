import ArgumentParser
import LarderCommandLine
import LarderFiles
import LarderRecords

struct Compact: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Writes the store's files anew, without what is free in them.",
        discussion: """
            What the store knows stays as it is, and programs that have it open go on. Takes as much disk again until \
            it is done.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let before = try folder.byteCount
        _ = try await folder.withCache(.writing, output) { try await $0.compact() }
        let written = Written(bytesBefore: before, bytesAfter: try folder.byteCount)
        try output.result(
            .object([("written", written.json)]),
            text: "the store has \(written.bytesAfter.counted("byte")) (\(written.bytesBefore) before)")
    }
}

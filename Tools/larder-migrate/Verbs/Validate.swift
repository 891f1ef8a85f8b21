import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords

struct Validate: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Looks whether the store is what its history says, and sound.",
        discussion: """
            Compares the migrations that were applied with those that this version knows, by their checksums; lets \
            SQLite check its file and its references; and checks each cache. Only reads. A process that writes \
            meanwhile can make a cache look damaged: validate again. The exit status is 5 if anything is wrong.
            """)

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        let exposure = StoreExposure(of: store.url, store.options.files)
        output.noteFinding(exposure)
        var findings: [String] = []
        let counts = try OperationsDatabase.check(folder: store.url, waiting: store.options.lockTimeout)
        findings += (counts?.problems ?? []).map { "larder.sqlite: \($0)" }
        // An edited migration is an error of its own, with both checksums. The history in a damaged file may be damaged
        // as well.
        let schema = counts?.problems.contains { $0.kind == .integrity } == true ? nil : try store.status().schema
        let caches = try StoreStatus.caches(of: store.url, options: store.options)
        for cache in caches {
            let folder = CacheFolder(store: store.url, partition: cache.partition, store.options)
            if let finding = try folder.finding(cache.format) {
                findings.append("cache \(cache.partition): \(finding)")
            }
        }
        guard findings.isEmpty else {
            for finding in findings { output.note(finding) }
            throw Failure(
                .findings, .damaged,
                "The store is damaged: \(findings.count.counted("finding")); "
                    + "larder-migrate repair shows what can be saved, larder-migrate restore brings back a backup",
                details: [("findingCount", .int(findings.count)), ("findings", .strings(findings)), exposure.member])
        }
        try output.result(
            .object([
                ("isSound", .boolean(true)), ("migrations", .int(schema?.applied.count ?? 0)),
                ("pending", .int(schema?.pending.count ?? 0)), ("mutations", .int(counts?.mutations ?? 0)),
                ("outcomes", .int(counts?.outcomes ?? 0)), ("watchers", .int(counts?.watchers ?? 0)),
                ("caches", .int(caches.count)), exposure.member,
            ]),
            text: "sound: \((schema?.applied.count ?? 0).counted("migration")) as applied, "
                + "\((counts?.mutations ?? 0).counted("mutation")), \(caches.count.counted("cache"))")
    }
}

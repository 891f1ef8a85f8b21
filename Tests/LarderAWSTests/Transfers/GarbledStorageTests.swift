import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Transfers with a storage whose answers are garbled", .timeLimit(.minutes(10)))
struct GarbledStorageTests {
    @Test("Whatever it answers at first, transfers are done, and whole, once it tells the truth", arguments: 0..<10)
    func garbled(index: Int) async throws {
        let seed = TestSeed.of("garbled answers", index)
        let garbled = GarbledStorage(seed: seed)
        try await TransferBench.run { bench in
            try await ScriptedStorage.run({ garbled.answer($0) }) { storage, transport in
                let transfers = [
                    try await bench.app.transfers.upload(bench.source, to: GarbledStorage.sent),
                    try await bench.app.transfers.download(.somewhere, to: bench.copy),
                ]
                var options = bench.options
                options.multipartThreshold = options.partSize
                for round in 0..<16 {
                    if round == 12 { garbled.tellTheTruth() }
                    try await TransferRunner(bench.app, storage: transport, options: options).drain()
                    for transfer in transfers where try transfer.status().state == .failed {
                        try await transfer.retry()
                    }
                }
                for transfer in transfers { #expect(try transfer.status().state == .done, "seed \(seed)") }
                #expect(try Array(Data(contentsOf: bench.copy)) == TransferBench.bytes, "seed \(seed)")
                // Pauses grow, and no list is followed for ever.
                #expect(storage.requests.count < 1_000, "seed \(seed)")
            }
        }
    }
}

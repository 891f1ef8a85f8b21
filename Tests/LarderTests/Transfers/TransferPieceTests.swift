import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

/// What attempts and their reports are made of, each by itself.
@Suite("Pieces of transfers", .timeLimit(.minutes(5)))
struct TransferPieceTests {
    private static let mebibyte: Int64 = 1 << 20

    @Test("What was handed over is left for a week, by a clock that was set back too")
    func handedOver() {
        let (begun, week) = (Date(timeIntervalSince1970: 1_800_000_000), 7 * 86_400.0)
        let end = begun.addingTimeInterval(week)
        for passed in [0, week - 1, 1 - week] {
            #expect(StoredTransfer.handOverEnd(begun, begun.addingTimeInterval(passed)) == end)
        }
        for passed in [week, -week] {
            #expect(StoredTransfer.handOverEnd(begun, begun.addingTimeInterval(passed)) == nil)
        }
    }

    @Test("Parts are as large as is wanted, as far as the storage takes them, and as few as it takes")
    func partSizes() {
        func size(_ wanted: Int64, of size: Int64, _ limits: ObjectLimits = .s3) -> Int64? {
            PartPlan.partSize(wanted: wanted, size: size, limits: limits)
        }
        let (mebibyte, wanted) = (Self.mebibyte, 8 * Self.mebibyte)
        #expect(size(wanted, of: 0) == wanted && size(wanted, of: 1) == wanted)
        #expect(size(1, of: 1) == 5 * mebibyte)
        #expect(size(6 << 30, of: 1) == 5 << 30)
        #expect(size(wanted, of: 10_000 * wanted) == wanted)
        // Beyond that they are rounded up to whole mebibytes.
        #expect(size(wanted, of: 10_000 * wanted + 1) == 9 * mebibyte)
        #expect(size(wanted, of: 5 << 40) == 525 * mebibyte)
        #expect(size(wanted, of: 5 << 40 + 1) == nil && size(wanted, of: -1) == nil)
        var limits = ObjectLimits(
            largestPut: 1, smallestPart: 1, largestPart: 10, maximumParts: 3, largestObject: 1_000)
        #expect(size(2, of: 30, limits) == 10 && size(2, of: 31, limits) == nil)
        #expect(size(0, of: 0, limits) == 1)
        limits.maximumParts = 0
        #expect(size(2, of: 10, limits) == 10 && size(2, of: 11, limits) == nil)
    }

    @Test("Pauses grow up to two minutes, and are as long as the storage asks where that is longer")
    func pauses() {
        var options = RunOptions.Transfers()
        options.random = { 1 }
        #expect(options.pause(after: 1) == .seconds(1) && options.pause(after: 2) == .seconds(2))
        #expect(options.pause(after: 99) == .seconds(120))
        #expect(options.pause(after: 99, asked: .seconds(60)) == .seconds(120))
        #expect(options.pause(after: 1, asked: .seconds(60)) == .seconds(60))
    }

    @Test("Pauses are of any length from none to their bound, as a random number says")
    func jitter() {
        var options = RunOptions.Transfers()
        for (fraction, seconds) in [(0.0, 0.0), (0.25, 1.0), (1.0, 4.0)] {
            options.random = { fraction }
            #expect(options.pause(after: 3) == .seconds(seconds))
        }
    }

    @Test("Amazon's storage takes 5 GiB in one piece and in a part, 10,000 parts, and 5 TiB in all")
    func amazonsLimits() {
        let limits = ObjectLimits.s3
        #expect(limits.largestPut == 5 << 30 && limits.largestPart == 5 << 30)
        #expect(limits.maximumParts == 10_000 && limits.largestObject == 5 << 40)
    }

    @Test("A place is told by its bucket and key, with the storage's name before them where it has one")
    func places() {
        #expect("\(ObjectLocation(bucket: "b", key: "k/1", region: "r"))" == "b/k/1")
        #expect("\(ObjectLocation(bucket: "b", key: "k/1", storage: "archive"))" == "archive:b/k/1")
    }

    @Test("Progress counts what has arrived and what is under way, and no part twice")
    func counts() {
        let meter = TransferMeter(arrived: 10)
        #expect(meter.read().completed == 10)
        meter.move(100, of: 1)
        meter.move(50, of: 2)
        meter.move(5, of: 1)
        #expect(meter.read().completed == 165)
        meter.end(1, arrived: 110)
        #expect(meter.read().completed == 170)
        // What was sent of a part that failed has not arrived.
        meter.end(2, arrived: nil)
        #expect(meter.read().completed == 120)
        meter.move(7, of: 3)
        meter.restart(arrived: 3)
        #expect(meter.read().completed == 3)
        meter.move(.max, of: 4)
        meter.move(.max, of: 5)
        #expect(meter.read().completed == .max)
    }

    @Test("The speed is that of the last five seconds, and is known after a tenth of a second")
    func speeds() {
        let meter = TransferMeter(arrived: 0)
        let begin = SuspendingClock.now
        func at(_ seconds: Double) -> SuspendingClock.Instant { begin + .seconds(seconds) }
        #expect(meter.read(at: begin).speed == nil)
        meter.move(100, of: 1, at: begin)
        #expect(meter.read(at: at(0.09)).speed == nil)
        #expect(meter.read(at: at(1)).speed == 0)
        meter.move(100, of: 1, at: at(2))
        #expect(meter.read(at: at(4)).speed == 25)
        // What follows within a tenth of a second is counted with the next.
        meter.move(50, of: 1, at: at(2.0625))
        #expect(meter.read(at: at(4)).speed == 37.5)
        #expect(meter.read(at: at(6)).speed == 12.5)
        #expect(meter.read(at: at(8)).speed == nil)
        meter.move(10, of: 1, at: at(20))
        #expect(meter.read(at: at(20)).speed == nil && meter.read(at: at(21)).speed == 0)
    }

    @Test("Of progress the fraction and the rest are told where they are known")
    func fractions() {
        func progress(_ state: TransferStatus.State, _ completed: Int64, _ total: Int64?, _ speed: Double? = nil)
            -> TransferProgress
        { TransferProgress(state: state, completed: completed, total: total, speed: speed) }
        #expect(progress(.running, 5, nil).fraction == nil && progress(.running, 5, nil, 5).remaining == nil)
        #expect(progress(.running, 5, 20, 5).fraction == 0.25)
        #expect(progress(.running, 5, 20, 5).remaining == .seconds(3))
        #expect(progress(.running, 5, 20).remaining == nil && progress(.running, 5, 20, 0).remaining == nil)
        #expect(progress(.running, 21, 20, 1).fraction == 1 && progress(.running, 21, 20, 1).remaining == .zero)
        #expect(progress(.running, 0, 0).fraction == 0 && progress(.done, 0, 0).fraction == 1)
    }

    @Test("A transfer is tried again after what may pass, of which faults are counted, and fails of everything else")
    func consequences() {
        /// Whether it counts as a fault; nil where the transfer is not tried again after a pause.
        func isFault(_ code: ObjectError.Code) -> Bool? {
            if case .retry(let isFault, _) = TransferConsequence(of: ObjectError(code, "")) { isFault } else { nil }
        }
        let faults: [ObjectError.Code] = [
            .timedOut, .interrupted, .serverFault, .checksum, .wrongLength, .unusableAnswer, .incomplete, .noSuchUpload,
        ]
        for code in faults { #expect(isFault(code) == true, "\(code.rawValue)") }
        for code in [.unreachable, .insecure, .notPrepared, .throttled] as [ObjectError.Code] {
            #expect(isFault(code) == false, "\(code.rawValue)")
        }
        let others: [ObjectError.Code] = [
            .accessDenied, .notFound, .noSuchBucket, .changed, .tooLarge, .rejected, .unusableRequest,
            .invalidCredentials, .expiredCredentials,
        ]
        for code in others { #expect(isFault(code) == nil, "\(code.rawValue)") }
    }

    @Test("An upload is in doubt only after errors that do not tell whether the storage has taken it")
    func doubts() {
        let leaving: [ObjectError] = [
            ObjectError(.serverFault, "", status: 502), ObjectError(.serverFault, "", status: 504),
            ObjectError(.unusableAnswer, "", status: 200), ObjectError(.unusableAnswer, ""),
            ObjectError(.cancelled, ""), ObjectError(.interrupted, ""), ObjectError(.timedOut, ""),
        ]
        let ending: [ObjectError] = [
            ObjectError(.serverFault, "", status: 500), ObjectError(.throttled, "", status: 503),
            ObjectError(.accessDenied, "", status: 403), ObjectError(.interrupted, "", status: 400),
            ObjectError(.unreachable, ""), ObjectError(.local, ""), ObjectError(.insecure, ""),
        ]
        for (errors, time) in [(leaving, Duration.seconds(7) as Duration?), (ending, nil)] {
            for error in errors {
                let doubt = UploadDoubt()
                #expect(doubt.time == nil)
                doubt.begin(lasting: .seconds(7))
                #expect(doubt.time == .seconds(7))
                doubt.end(unless: error)
                #expect(doubt.time == time, "\(error) \(error.status ?? 0)")
                doubt.end()
                #expect(doubt.time == nil)
            }
        }
    }

    @Test("A host's pause is over for all once one exchange that began after it was well")
    func widens() async throws {
        let counts = RecordedCounts()
        let connections = Connections(limit: 2) { count, _ in
            counts.add(count)
            return .zero
        }
        let throttled = ObjectError(.throttled, "", retryAfter: .seconds(1))
        for _ in 0..<2 {
            await #expect(throws: ObjectError.self) { try await connections.with("h") { throw throttled } }
        }
        try await connections.with("h") {}
        await #expect(throws: ObjectError.self) { try await connections.with("h") { throw throttled } }
        // Another host has had none.
        await #expect(throws: ObjectError.self) { try await connections.with("other") { throw throttled } }
        #expect(counts.values == [1, 2, 1, 1])
        #expect(connections.left(of: "h") == nil && connections.left(of: "never") == nil)
    }

    @Test("A pause of a host refuses what begins meanwhile, with what is left of it")
    func holds() async throws {
        let connections = Connections(limit: 2) { _, asked in asked ?? .zero }
        connections.hold("h", for: .seconds(3600), since: .now)
        let left = try #require(connections.left(of: "h"))
        #expect(left > .seconds(3000) && left <= .seconds(3600))
        let error = await #expect(throws: ObjectError.self) {
            try await connections.with("h") { Issue.record("it was let in") }
        }
        #expect(error?.code == .throttled && (error?.retryAfter ?? .zero) > .seconds(3000))
        // What began before the pause is no second plea.
        connections.hold("h", for: .seconds(9000), since: .now - .seconds(1))
        #expect(try #require(connections.left(of: "h")) <= .seconds(3600))
        try await connections.with("other") {}
    }

    @Test("An exchange that is cancelled while it waits for its place ends at once, and the next one has the place")
    func cancelledWait() async throws {
        let connections = Connections(limit: 1) { _, asked in asked ?? .zero }
        let (hasBegun, mayEnd, isOver) = (Flag(), Flag(), Flag())
        let first = Task {
            try await connections.with("h") {
                hasBegun.set()
                await mayEnd.wait()
            }
        }
        await hasBegun.wait()
        let waiting = Task {
            defer { isOver.set() }
            _ = try await connections.with("h") { Issue.record("it was let in") }
        }
        try await Task.sleep(for: .milliseconds(20))
        waiting.cancel()
        await isOver.wait()
        #expect(isOver.isSet)
        mayEnd.set()
        try await first.value
        await #expect(throws: CancellationError.self) { try await waiting.value }
        try await connections.with("h") {}
    }

    @Test("A turn is a quarter of a second's bytes, and 4 KiB at least; without a bandwidth there is none")
    func turns() {
        #expect(Pacer(bandwidth: nil).turn == nil)
        #expect(Pacer(bandwidth: 1 << 20).turn == 1 << 18)
        #expect(Pacer(bandwidth: 1).turn == 4 << 10 && Pacer(bandwidth: -5).turn == 4 << 10)
    }

    @Test("Progress of a transfer under way has its speed and what moves, but no more than all of it")
    func speedIsTold() {
        let book = TransferBook()
        let transfer = StoredTransfer(
            sequence: 1, id: UUID(), partition: "main", kind: .upload, state: .running, priority: 0, bucket: "b",
            key: "k", path: "/f", replaces: false, attempts: 1, created: Date(), size: 1_000, arrived: 100)
        let waiting = book.progress(of: TransferStatus(transfer))
        #expect(waiting.completed == 100 && waiting.speed == nil)
        let meter = book.meter(of: transfer.id, arrived: 100)
        meter.move(50, of: 1, at: .now - .seconds(2))
        let moving = book.progress(of: TransferStatus(transfer))
        #expect(moving.completed == 150 && moving.speed == 0)
        book.forgetMeter(of: transfer.id)
        #expect(book.progress(of: TransferStatus(transfer)) == waiting)
    }

    @Test("A transfer whose time to be tried again has come has its turn next, and waits for nothing")
    func turnIsNext() async throws {
        try await withStoreFixture { app in
            let suffix = TransferRunner.lockSuffix
            let runner = RunnerLifecycle(app.core, changeSignal: ChangeSignal(), lockSuffix: suffix)
            app.core.runners.note(.running, of: runner, suffix)
            var transfer = StoredTransfer(
                sequence: 1, id: UUID(), partition: "main", kind: .upload, state: .pending, priority: 0, bucket: "b",
                key: "k", path: "/f", replaces: false, attempts: 1, created: Date(), size: 1_000, arrived: 100)
            let later = Date(timeIntervalSinceNow: 600)
            transfer.notBefore = later
            #expect(app.core.progress(of: TransferStatus(transfer)).waiting == .retry(at: later))
            transfer.notBefore = Date(timeIntervalSinceNow: -1)
            #expect(app.core.progress(of: TransferStatus(transfer)).waiting == nil)
            app.core.runners.note(.stopped, of: runner, suffix)
        }
    }

    @Test("A caller that waits for a transfer is told of its change also where another caller waits no longer")
    func waitsOn() async throws {
        try await withStoreFixture { app in
            let (book, id) = (TransferBook(), UUID())
            let waiting = book.changeSignal(of: id, app.core)
            _ = book.changeSignal(of: id, app.core)
            book.releaseChangeSignal(of: id)
            let count = waiting.count
            book.noteChanges(of: [id])
            #expect(waiting.count > count)
            book.releaseChangeSignal(of: id)
        }
    }

    @Test("A file in its place whose folder cannot be synced is an error, for a power cut may undo it")
    func unsyncedFolder() async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem { $0.kind == .synchronizeFolder ? .failure(EIO) : nil }
            let file = folder.appending(path: "copy")
            let failing = DestinationFile(file: file, replaces: false, files)
            let error = #expect(throws: LarderError.self) { try failing.synchronizeFolder() }
            #expect(error?.code == .destinationUnusable)
            try DestinationFile(file: file, replaces: false, FileSystem()).synchronizeFolder()
        }
    }

    @Test("A source that ends before what is to be read of it is another file than was queued")
    func shortSource() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 100)
            let files = FileSystem()
            let source = try SourceFile(
                path: file.path, identity: try SourceFile.identity(at: file.path, files), files)
            var found = [UInt8](repeating: 0, count: 60)
            try found.withUnsafeMutableBytes { try source.read(40, $0) }
            #expect(found == Array(bytes[40...]))
            found.withUnsafeMutableBytes { buffer in
                let error = #expect(throws: LarderError.self) { try source.read(41, buffer) }
                #expect(error?.code == .sourceChanged)
            }
        }
    }

    @Test("Of several runners the state is that of the one that does not stand by")
    func runners() async throws {
        try await withStoreFixture { app in
            let states = RunnerStates()
            let runners = (0..<3).map { _ in
                RunnerLifecycle(app.core, changeSignal: ChangeSignal(), lockSuffix: ".x")
            }
            #expect(states.state(of: "a") == .stopped)
            states.note(.standingBy, of: runners[0], "a")
            #expect(states.state(of: "a") == .standingBy && states.state(of: "b") == .stopped)
            states.note(.offline, of: runners[1], "a")
            states.note(.running, of: runners[2], "b")
            #expect(states.state(of: "a") == .offline && states.state(of: "b") == .running)
            states.note(.stopped, of: runners[1], "a")
            #expect(states.state(of: "a") == .standingBy)
        }
    }

    @Test("A transfer's id is read from its text, in any case")
    func ids() throws {
        let text = "0f8fad5b-d9cb-469f-a165-70867728950e"
        let id = try #require(TransferID(text.uppercased()))
        #expect(id == TransferID(text) && "\(id)" == text)
        #expect(TransferID("none") == nil)
    }

    @Test("A file is kept by its standard path, however it is named")
    func paths() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let folder = fixture.folder.path
            for path in ["\(folder)/./source", "\(folder)//source", "\(folder)/x/../source", "\(folder)/source"] {
                let upload = try await fixture.app.transfers.upload(
                    URL(fileURLWithPath: path, isDirectory: false), to: TransferFixture.location)
                #expect(try upload.status().file.path == file.path, "\(path)")
            }
            await expectCode(.invalidTransfer) {
                _ = try await fixture.app.transfers.upload(
                    try #require(URL(string: "https://example.com/source")), to: TransferFixture.location)
            }
        }
    }

    @Test("The file of a download is kept by its standard path, however it is named")
    func downloadPaths() async throws {
        try await withTransferFixture { fixture in
            let folder = fixture.folder.path
            for path in ["\(folder)/./copy", "\(folder)//copy", "\(folder)/store/../copy", "\(folder)/copy"] {
                let download = try await fixture.app.transfers.download(
                    TransferFixture.location, to: URL(fileURLWithPath: path, isDirectory: false))
                #expect(try download.status().file.path == "\(folder)/copy", "\(path)")
            }
        }
    }

    @Test(
        "Files are noted relative to the home, in whatever way its path is written",
        arguments: ["/apps/program", "/apps/program/", "/apps/program/.", "/apps/x/../program"])
    func homes(path: String) {
        var options = Store.Options()
        options.home = URL(filePath: path)
        #expect(options.operations.home?.path == "/apps/program")
    }

    @Test("Transfers are listed by their states, in the order in which they were queued")
    func lists() async throws {
        try await withTransferFixture { fixture in
            let transfers = fixture.app.transfers
            #expect(try transfers.list().isEmpty && transfers.all().isEmpty)
            let (file, _) = try fixture.file(bytes: 10)
            var queued: [Transfer] = []
            for key in ["b", "a", "c"] {
                queued.append(try await transfers.upload(file, to: .init(bucket: "media", key: key)))
            }
            try await queued[1].pause()
            #expect(try transfers.all() == queued)
            #expect(try transfers.all(in: [.pending]) == [queued[0], queued[2]])
            #expect(try transfers.list(in: [.paused]).map(\.location.key) == ["a"])
            #expect(try transfers.list(in: []).isEmpty)
        }
    }
}

private final class RecordedCounts: Sendable {
    private let counts = Locked<[Int]>([])

    var values: [Int] { counts.withLock { $0 } }

    func add(_ count: Int) { counts.withLock { $0.append(count) } }
}

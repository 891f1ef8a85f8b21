import Foundation
import Larder
import LarderPowerLoss
import LarderRecords
import LarderTestSupport

// A program that the tests start, stop and kill while it works on a store.
//
//     larder-crash STORE count SEED     writes, compacts and clears, and says when each is done, until it is killed
//     larder-crash STORE churn SEED N   does N things at random beside others that do the same; fails at any error
//     larder-crash STORE stop           stops itself inside a write
//     larder-crash STORE clear          clears once
//     larder-crash STORE verify         looks at everything, and says the number that is stored
//     larder-crash STORE full WORK HOW LEFT
//                                       does something while there is no room, and again when there is: see FullDisk
//     larder-crash STORE fullqueue STEP HOW LEFT plain|telling
//                                       sends mutations while there is no room, and again when there is: see FullQueue
//     larder-crash STORE stranger WORK  does something as a user to whom nothing here belongs: see Stranger
//     larder-crash STORE mutate LEDGER plain|telling SEED COUNT [STEP N]
//                                       queues mutations and sends them, until it is killed: see Mutations
//     larder-crash STORE suspend LEDGER plain|telling SEED COUNT ROUNDS
//                                       does that, and suspends and resumes meanwhile: see Suspending
//     larder-crash STORE switch SEED [STEP N]
//                                       switches between environments, queues and signs in there, until it is killed,
//                                       or kills itself after a step: see Switching
//     larder-crash STORE power MARKS SEED N
//                                       works through N lives that each end well, while it is recorded: see
//                                       PowerLossLoad
//     larder-crash STORE transfers MARKS SEED N
//                                       does that with transfers, of files that are kept beside the marks: see
//                                       TransferLoad
//     larder-crash STORE recover-power|recover-transfers MARKS SEED N
//                                       goes on with a store that such a load was killed in; the marks are kept
//     larder-crash STORE faults MARKS ANSWER N
//                                       works through N lives while a sync fails: see FaultLoad
//     larder-crash STORE records MARKS SEED N
//                                       stores answers in a new store, and queues nothing: see RecordsLoad
//     larder-crash STORE store|failing-store|recover-store MARKS SEED N
//                                       switches, signs in, restores, repairs, forgets: see StoreLoad
//     larder-crash STORE longlog MARKS SEED N
//                                       fills the queue's log beside one who reads: see LongLog
//     larder-crash STORE tools MARKS SEED N
//                                       does to a store what the tools do: see ToolLoad
//     larder-crash STORE share LEDGER plain|telling SEED COUNT END [STEP N]
//                                       does that beside others, until there is a file END and nothing is left
//     larder-crash STORE refresh LEDGER CLOCK ROUNDS plain|hanging
//                                       asks for credentials once at each hour of the clock: see RefreshLoad
//     larder-crash STORE cognito URL POOL SIGNAL plain|stopping
//                                       has tokens refreshed once there is a file SIGNAL: see CognitoRefresh
//     larder-crash STORE contend LEDGERS ROUNDS SEED
//                                       switches, refreshes, migrates and queues beside others that do so: see
//                                       Contention
//     larder-crash STORE rotate [STEP]  changes the program's key again and again, until it is killed: see RotationLoad
//     larder-crash FOLDER rows SEED N   works on stores that each have one hostile value, N of them or all: see RowFuzz
//     larder-crash STORE belongings - WORK
//                                       makes all that belongs to a store, while it is recorded: see Belongings
//     larder-crash FOLDER enqueue       queues from eight tasks, and says each id once it is accepted: see QueueLoad
//     larder-crash FOLDER drain N       queues and carries out N mutations beside others that do the same
//     larder-crash STORE carry ENDPOINT KEY SECRET LEDGER [STEP N]
//                                       carries transfers out, and kills itself after N of a step: see Carrying
//     larder-crash STORE outside FOLDER SEED
//                                       sends what another program hands over by a folder: see OutsideSending
//     larder-crash STORE carry-outside FOLDER [STEP N]
//                                       has uploads sent so, and kills itself after N of a step
//     larder-crash STORE hold           takes the migration lock, says so, and keeps it: see Administration
//     larder-crash STORE up [STEP]      migrates, and kills itself at a step
//     larder-crash STORE backup TO [STEP]
//     larder-crash STORE restore FROM [STEP]
//     larder-crash STORE repair [STEP]
//     larder-crash STORE forget NAME [STEP]
//     larder-crash STORE stamp N        writes to a record cache and stamps it, and kills itself before its Nth call of
//                                       the system: see Stamping
//     larder-crash STORE collect|evict SEED N
//                                       makes garbage and collects it, or evicts what may go, and kills itself after N
//                                       slices: see Collecting
//     larder-crash STORE pages N        loads all pages of a list, and kills itself after N requests and pages: see Paging
//     larder-crash STORE converge ENDPOINT appsync|websocket [TOKEN]
//                                       follows a server until it is killed: see Converging
//     larder-crash STORE book TIME N ORDERS WORK...
//                                       works on a list of pages, and kills itself after N steps: see Booking
//     larder-crash STORE doze           says whether the machine slept between two looks at the clock
//     larder-crash STORE use [reading]  reads and writes, or reads alone, and says what it reads; fails at any error
//     larder-crash STORE load WORK      does something large, and says how much memory it took: see Load

@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

let words = Words(CommandLine.arguments)
let folder = words.store

func open(_ options: Store.Options = .init()) throws -> (Store, Partition) {
    let store = try Store.open(at: folder, schema: try Schema(parsing: crashSchema), options: options)
    return (store, try store.partition())
}

func marks(continued: Bool = false) throws -> Marks { try Marks(words.file(0), continued: continued) }

/// The files of `TransferLoad` lie beside its marks.
func transferLoad(_ marks: Marks, seed: UInt64, lives: Int) -> TransferLoad {
    let sources = words.file(0).deletingLastPathComponent().appending(path: "sources")
    return TransferLoad(folder: folder, sources: sources, marks: marks, seed: seed, lives: lives)
}

func ledgerServer() -> LedgerServer {
    LedgerServer(ledger: words.file(0), tellsRepeats: words.text(1) == "telling", seed: words.number(2))
}

func scarceRoom() -> ScarceRoom { ScarceRoom(words.choice(1), left: words.number(2), besides: folder) }

switch words.verb {
case "count":
    let (_, app) = try open()
    var random = SeededNumbers(seed: words.number(0))
    var number = (try? app.read(shelf)).flatMap(wholeNumber) ?? 0
    while true {
        switch random.next() % 12 {
        case 0:
            say("compacting")
            async let report = app.records.compact()
            for _ in 0..<random.next() % 8 {
                number += 1
                try await app.write(shelf, json: shelfData(number))
                say("wrote \(number)")
            }
            _ = try await report
            say("compacted")
        case 1 where random.next() % 3 == 0:
            say("clearing")
            _ = try await app.records.clear()
            say("cleared")
        default:
            number += 1
            try await app.write(shelf, json: shelfData(number))
            say("wrote \(number)")
        }
    }
case "churn":
    let (store, app) = try open()
    var random = SeededNumbers(seed: words.number(0))
    for _ in 0..<words.number(1, default: 100) {
        switch random.next() % 16 {
        case 0: _ = try await app.records.compact(deadline: .now + .seconds(60))
        case 1: _ = try await app.records.clear(deadline: .now + .seconds(60))
        case 2...8: try await app.write(shelf, json: shelfData(Int(random.next() % 1_000_000)))
        default:
            let answer = try app.read(shelf, allowsPartial: true)
            guard !answer.isComplete || wholeNumber(answer) != nil else {
                say("half a commit was read")
                exit(1)
            }
        }
    }
    try store.close()
case "mutate":
    try await Mutations.run(
        in: folder, server: ledgerServer(), accepting: words.number(3), killedAfter: words.step(4),
        seed: words.number(2))
case "suspend":
    try await Suspending.run(
        in: folder, server: ledgerServer(), accepting: words.number(3), rounds: words.number(4), seed: words.number(2))
case "switch":
    let step: (EnvironmentSwitch.KillPoint, Int)? = words.step(1)
    try await Switching.run(in: folder, seed: words.number(0), until: step?.0, times: step?.1 ?? 0)
#if os(Linux)
case "network": try await Network.run(in: folder)
#endif
case "sign-in":
    let step: (EnvironmentSwitch.KillPoint, Int)? = words.step(1)
    try await SigningIn.run(in: folder, seed: words.number(0), until: step?.0, times: step?.1 ?? 0)
case "power":
    try await PowerLossLoad(folder: folder, marks: marks(), seed: words.number(1), lives: words.number(2)).run()
case "faults":
    guard let answer = FaultLoad.Answer(rawValue: words.number(1)) else { exit(2) }
    try await FaultLoad(folder: folder, marks: marks(), answer: answer, lives: words.number(2)).run()
case "recover-power":
    let earlier = try Marks.lines(of: words.file(0))
    try await PowerLossLoad(folder: folder, marks: marks(continued: true), seed: 1, lives: 1).recover(after: earlier)
case "recover-transfers":
    let earlier = try Marks.lines(of: words.file(0))
    try await transferLoad(marks(continued: true), seed: 1, lives: 1).recover(after: earlier)
case "store": try await StoreLoad(folder: folder, marks: marks()).run()
case "failing-store": await StoreLoad(folder: folder, marks: try marks()).runUntilFailure()
case "recover-store": try await StoreLoad(folder: folder, marks: marks(continued: true)).recover()
case "records": try await RecordsLoad(folder: folder, marks: marks()).run()
case "longlog": try await LongLog(folder: folder, marks: marks()).run()
case "tools": try await ToolLoad(folder: folder, marks: marks()).run()
case "transfers":
    let load = transferLoad(try marks(), seed: words.number(1), lives: words.number(2))
    try FileManager.default.createDirectory(at: load.sources, withIntermediateDirectories: true)
    try await load.run()
case "share":
    try await Mutations.share(
        in: folder, server: ledgerServer(), accepting: words.number(3), until: words.file(4),
        killedAfter: words.step(5), seed: words.number(2))
case "stop":
    let (_, app) = try open()
    try await app.update(shelf) { _ in
        say("stopping")
        kill(getpid(), SIGSTOP)
        // The signal may reach another thread first.
        sleep(3600)
    }
case "verify":
    let (store, app) = try open()
    let report = try app.records.check()
    guard report.isSound else {
        say("unsound: \(report.problems.first.map { "\($0)" } ?? "?")")
        exit(1)
    }
    say((try? app.read(shelf)).flatMap(wholeNumber).map { "\($0)" } ?? "none")
    try store.close()
case "collect", "evict":
    let (seed, slice): (UInt64, Int) = (words.number(0), words.number(1))
    try await Collecting(folder: folder).run(seed: seed, killedAfter: slice, evicting: words.verb == "evict")
case "book":
    let (time, step): (Int64, Int) = (words.number(0), words.number(1))
    let book = OrderBook(words.text(3).split(separator: ",").compactMap { Int($0) }, words.choice(2))
    var works: [String] = []
    while words.has(4 + works.count) { works.append(words.text(4 + works.count)) }
    try await Booking(folder: folder, time: time, book: book, works: works).run(killedAfter: step)
case "doze": say(ContinuousClock.now.duration(to: .now) > .seconds(1800) ? "slept" : "did not sleep")
case "pages": try await Paging(folder: folder).run(killedAfter: words.number(0))
case "converge":
    endWithStandardInput()
    guard let endpoint = URL(string: words.text(0)) else { exit(2) }
    try await Converging(
        folder: folder, endpoint: endpoint, kind: words.choice(1), token: words.has(2) ? words.file(2) : nil
    ).run()
case "stamp": try await Stamping(folder: folder).run(killedBefore: words.number(0))
case "belongings":
    try await Belongings(folder: folder, work: words.choice(1)).run()
case "clear":
    let (store, app) = try open()
    _ = try await app.records.clear()
    try store.close()
case "full":
    try await FullDisk(folder: folder, work: words.choice(0), room: scarceRoom()).run()
case "fullqueue":
    try await FullQueue(
        folder: folder, step: words.choice(0), room: scarceRoom(), tellsRepeats: words.text(3) == "telling"
    ).run()
case "stranger":
    try await Stranger(folder: folder, work: words.choice(0)).run()
case "refresh":
    try await RefreshLoad(
        folder: folder, ledger: TokenLedger(words.file(0)), clock: words.file(1), isHanging: words.text(3) == "hanging"
    ).run(rounds: words.number(2))
case "cognito":
    endWithStandardInput()
    guard let endpoint = URL(string: words.text(0)) else { exit(2) }
    try await CognitoRefresh(
        folder: folder, endpoint: endpoint,
        pool: .init(id: words.text(1), clientID: "client", region: "us-east-1"), isStopping: words.text(3) == "stopping"
    ).run(whenThereIs: words.file(2))
case "contend":
    try await Contention(folder: folder, ledgers: words.file(0)).run(rounds: words.number(1), seed: words.number(2))
case "rotate": try await RotationLoad(folder: folder).run(killedAfter: words.has(0) ? words.text(0) : "")
case "rows": try await RowFuzz(folder: folder, seed: words.number(0)).run(words.has(1) ? words.number(1) : nil)
case "load":
    let load: Load = words.choice(0)
    try await load.run(folder)
case "enqueue", "drain":
    endWithStandardInput()
    let load = try QueueLoad(folder: folder)
    if words.verb == "drain" { try await load.drain(words.number(0)) } else { try await load.enqueue() }
case "carry":
    endWithStandardInput()
    guard let endpoint = URL(string: words.text(0)) else { exit(2) }
    let keys = Credentials.CloudCredentials(accessKeyID: words.text(1), secretAccessKey: words.text(2), expires: nil)
    try await Carrying(folder: folder, endpoint: endpoint, keys: keys, ledger: Ledger(file: words.file(3)))
        .run(killedAfter: words.step(4))
case "outside":
    endWithStandardInput()
    try await OutsideSending.run(OutsideFolder(words.file(0)), seed: words.number(1))
case "carry-outside":
    endWithStandardInput()
    try await OutsideCarrying.run(folder, OutsideFolder(words.file(0)), killedAfter: words.step(1))
case "hold", "up", "backup", "restore", "repair", "forget", "use":
    endWithStandardInput()
    try await Administration(store: folder, words: words).run()
default: exit(2)
}

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
//     larder-crash STORE switch SEED [STEP N]
//                                       switches between environments, queues and signs in there, until it is killed, or
//                                       kills itself after a step: see Switching
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
//     larder-crash STORE contend LEDGERS ROUNDS SEED
//                                       switches, refreshes, migrates and queues beside others that do so: see
//                                       Contention
//     larder-crash STORE rotate [STEP]  changes the program's key again and again, until it is killed: see RotationLoad
//     larder-crash FOLDER rows SEED N   works on stores that each have one hostile value, N of them or all: see RowFuzz
//     larder-crash STORE belongings - WORK
//                                       makes all that belongs to a store, while it is recorded: see Belongings
//     larder-crash STORE load WORK      does something large, and says how much memory it took: see Load

@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { exit(2) }
let folder = URL(filePath: arguments[1])
let argument = arguments.count > 3 ? arguments[3] : ""
var random = SeededNumbers(seed: UInt64(argument) ?? 1)

func open(_ options: Store.Options = .init()) throws -> (Store, Partition) {
    let store = try Store.open(at: folder, schema: try Schema(parsing: crashSchema), options: options)
    return (store, try store.partition())
}

switch arguments[2] {
case "count":
    let (_, app) = try open()
    var number = (try? app.read(shelf)).flatMap(wholeNumber) ?? 0
    while true {
        switch random.next() % 12 {
        case 0:
            say("compacting")
            _ = try await app.records.compact()
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
    for _ in 0..<(arguments.count > 4 ? Int(arguments[4]) ?? 100 : 100) {
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
    guard arguments.count >= 7, let seed = UInt64(arguments[5]), let count = Int(arguments[6]) else { exit(2) }
    let step = arguments.count > 8 ? MutationStep(rawValue: arguments[7]) : nil
    try await Mutations.run(
        in: folder,
        server: LedgerServer(ledger: URL(filePath: argument), tellsRepeats: arguments[4] == "telling", seed: seed),
        accepting: count, killedAfter: step.map { ($0, Int(arguments[8]) ?? 1) }, seed: seed)
case "switch":
    try await Switching.run(
        in: folder, seed: UInt64(argument) ?? 1, until: arguments.count > 5 ? SwitchStep(rawValue: arguments[4]) : nil,
        times: arguments.count > 5 ? Int(arguments[5]) ?? 1 : 0)
case "power":
    guard arguments.count > 5, let seed = UInt64(arguments[4]), let lives = Int(arguments[5]) else { exit(2) }
    let marks = try Marks(URL(filePath: argument))
    try await PowerLossLoad(folder: folder, marks: marks, seed: seed, lives: lives).run()
case "faults":
    guard arguments.count > 5, let answer = UInt64(arguments[4]).flatMap(FaultLoad.Answer.init),
        let lives = Int(arguments[5])
    else { exit(2) }
    try await FaultLoad(
        folder: folder, marks: try Marks(URL(filePath: argument)), answer: answer, lives: lives
    ).run()
case "recover-power":
    let file = URL(filePath: argument)
    let earlier = try Marks.lines(of: file)
    try await PowerLossLoad(
        folder: folder, marks: try Marks(file, continued: true), seed: 1, lives: 1
    ).recover(after: earlier)
case "recover-transfers":
    let file = URL(filePath: argument)
    let (earlier, sources) = (try Marks.lines(of: file), file.deletingLastPathComponent().appending(path: "sources"))
    try await TransferLoad(
        folder: folder, sources: sources, marks: try Marks(file, continued: true), seed: 1, lives: 1
    ).recover(after: earlier)
case "store": try await StoreLoad(folder: folder, marks: try Marks(URL(filePath: argument))).run()
case "failing-store":
    await StoreLoad(folder: folder, marks: try Marks(URL(filePath: argument))).runUntilFailure()
case "recover-store":
    try await StoreLoad(folder: folder, marks: try Marks(URL(filePath: argument), continued: true)).recover()
case "longlog": try await LongLog(folder: folder, marks: try Marks(URL(filePath: argument))).run()
case "tools": try await ToolLoad(folder: folder, marks: try Marks(URL(filePath: argument))).run()
case "transfers":
    guard arguments.count > 5, let seed = UInt64(arguments[4]), let lives = Int(arguments[5]) else { exit(2) }
    let file = URL(filePath: argument)
    let sources = file.deletingLastPathComponent().appending(path: "sources")
    try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
    try await TransferLoad(folder: folder, sources: sources, marks: try Marks(file), seed: seed, lives: lives).run()
case "share":
    guard arguments.count >= 8, let seed = UInt64(arguments[5]), let count = Int(arguments[6]) else { exit(2) }
    let step = arguments.count > 9 ? MutationStep(rawValue: arguments[8]) : nil
    try await Mutations.share(
        in: folder,
        server: LedgerServer(ledger: URL(filePath: argument), tellsRepeats: arguments[4] == "telling", seed: seed),
        accepting: count, until: URL(filePath: arguments[7]), killedAfter: step.map { ($0, Int(arguments[9]) ?? 1) },
        seed: seed)
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
case "belongings":
    guard arguments.count > 4, let work = Belongings.Work(rawValue: arguments[4]) else { exit(2) }
    try await Belongings(folder: folder, work: work).run()
case "clear":
    let (store, app) = try open()
    _ = try await app.records.clear()
    try store.close()
case "full":
    guard let work = FullDisk.Work(rawValue: argument), arguments.count > 5,
        let room = ScarceRoom.Kind(rawValue: arguments[4]), let left = Int(arguments[5])
    else { exit(2) }
    try await FullDisk(folder: folder, work: work, room: ScarceRoom(room, left: left, besides: folder)).run()
case "fullqueue":
    guard let step = FullQueue.Step(rawValue: argument), arguments.count > 6,
        let room = ScarceRoom.Kind(rawValue: arguments[4]), let left = Int(arguments[5])
    else { exit(2) }
    try await FullQueue(
        folder: folder, step: step, room: ScarceRoom(room, left: left, besides: folder),
        tellsRepeats: arguments[6] == "telling"
    ).run()
case "stranger":
    guard let work = Stranger.Work(rawValue: argument) else { exit(2) }
    try await Stranger(folder: folder, work: work).run()
case "refresh":
    guard arguments.count > 6, let rounds = Int(arguments[5]) else { exit(2) }
    try await RefreshLoad(
        folder: folder, ledger: TokenLedger(URL(filePath: argument)), clock: URL(filePath: arguments[4]),
        isHanging: arguments[6] == "hanging"
    ).run(rounds: rounds)
case "contend":
    guard arguments.count > 5, let rounds = Int(arguments[4]), let seed = UInt64(arguments[5]) else { exit(2) }
    try await Contention(folder: folder, ledgers: URL(filePath: argument)).run(rounds: rounds, seed: seed)
case "rotate":
    try await RotationLoad(folder: folder).run(killedAfter: argument)
case "rows":
    try await RowFuzz(folder: folder, seed: UInt64(argument) ?? 1).run(arguments.count > 4 ? Int(arguments[4]) : nil)
case "load":
    guard let load = Load(rawValue: argument) else { exit(2) }
    try await load.run(folder)
default: exit(2)
}

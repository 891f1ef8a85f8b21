import Foundation
import Larder
import LarderTestSupport
import NIOCore
import Synchronization
import Testing

@Suite(
    "Transfers over a bad wire", .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"),
    .timeLimit(.minutes(10)))
struct FaultyTransferTests {
    /// The exchanges of an upload in parts, and of a download.
    enum Exchange: Sendable, CaseIterable {
        case listing, beginning, part, completion, object, range

        var isOfUpload: Bool { self != .object && self != .range }

        func isMeant(_ head: String) -> Bool {
            let line = head.prefix { $0 != "\n" }
            return switch self {
            case .listing: line.hasPrefix("GET ") && line.contains("uploads=")
            case .beginning: line.hasPrefix("POST ") && line.contains("uploads=")
            case .part: line.contains("partNumber=2&") || line.contains("partNumber=2 ")
            case .completion: line.hasPrefix("POST ") && line.contains("uploadId=")
            case .object: line.hasPrefix("HEAD ")
            case .range: head.lowercased().contains("\nrange: bytes=1024-")
            }
        }

        /// Each byte of the exchanges that carry the file's, and some of the others'.
        var spots: [(FaultyWire.Side, FaultyWire.Spot)] {
            switch self {
            case .part, .range:
                FaultyWire.Side.allCases.flatMap { side in FaultyWire.Spot.allCases.map { (side, $0) } }
            default: [(.request, .head), (.answer, .start), (.answer, .end)]
            }
        }
    }

    enum Kind: String, Sendable, CaseIterable {
        case cut, stall, delay, corrupt, throttle, internalError, slowDown, accessDenied, expiredToken, forbiddenToken
        case skewedTime

        var fault: FaultyWire.Fault {
            switch self {
            case .cut: .cut
            case .stall: .stall
            case .delay: .delay(.milliseconds(30))
            case .corrupt: .corrupt
            case .throttle: .throttle(61)
            case .internalError: .answer(.internalError)
            case .slowDown: .answer(.slowDown)
            case .accessDenied: .answer(.accessDenied)
            case .expiredToken: .answer(.expiredToken)
            case .forbiddenToken: .answer(.forbiddenToken)
            case .skewedTime: .answer(.skewedTime)
            }
        }

        /// Whether it may end a transfer: one that may not go on, or whose object is described wrongly. Whatever else
        /// happens once is got over.
        var mayFail: Bool { self == .accessDenied || self == .corrupt }
    }

    @Test(
        "A fault that passes, wherever it is, leaves a transfer whole, or failed with its reason, and nothing else",
        arguments: Kind.allCases, Exchange.allCases)
    func passing(kind: Kind, exchange: Exchange) async throws {
        let next = Mutex<FaultyWire.Plan?>(nil)
        let planner: FaultyWire.Planner = { head in
            guard exchange.isMeant(head) else { return nil }
            return next.withLock { $0.take() }
        }
        try await BadWireLoad.run(planner) { load in
            for (side, spot) in exchange.spots {
                // A storage that refuses a request for its time has not carried it out.
                if kind == .skewedTime, side == .answer { continue }
                next.withLock { $0 = FaultyWire.Plan(fault: kind.fault, side: side, place: .spot(spot)) }
                let note: Comment = "\(kind) at the \(spot) of the \(side) of \(exchange)"
                let end = try await load.carry(isUpload: exchange.isOfUpload, note)
                let hasHappened = next.withLock { $0 == nil }
                #expect(hasHappened, note)
                if !kind.mayFail { #expect(end.state == .done, "\(String(describing: end.failure)); \(note)") }
                // Whoever may not list uploads may send them all the same, and what an object is, is asked again.
                if kind == .accessDenied, spot == .start, exchange != .listing, exchange != .object {
                    #expect(end.failure?.code.rawValue == "object.accessDenied", note)
                }
            }
        }
    }

    @Test(
        "A fault that stays ends a transfer with its reason, and nothing is left",
        arguments: [
            (Kind.cut, ["object.interrupted"]), (.stall, ["object.timedOut"]), (.internalError, ["object.serverFault"]),
            (.accessDenied, ["object.accessDenied"]), (.skewedTime, ["object.clockSkew"]),
            (.corrupt, ["object.checksum", "object.invalidCredentials", "transfer.damaged"]),
        ], [Exchange.part, .range])
    func staying(fault: (kind: Kind, codes: [String]), exchange: Exchange) async throws {
        let plan = FaultyWire.Plan(
            fault: fault.kind.fault, side: exchange == .range ? .answer : .request,
            place: .spot(fault.kind == .corrupt || fault.kind == .cut ? .middle : .start))
        try await BadWireLoad.run({ exchange.isMeant($0) ? plan : nil }) { load in
            let note: Comment = "\(fault.kind) of \(exchange)"
            let end = try await load.carry(isUpload: exchange.isOfUpload, note) { $0.maximumFaults = 3 }
            #expect(end.state == .failed, note)
            #expect(
                fault.codes.contains(end.failure?.code.rawValue ?? ""), "\(String(describing: end.failure)); \(note)")
        }
    }
}

import Foundation
import Testing

@testable import LarderOperations

@Suite("Switching", .timeLimit(.minutes(10)))
struct SwitchTests {
    @Test("The first partition that is entered is the current one, and is entered again without a word")
    func first() async throws {
        try await withOperations { database in
            #expect(try database.environments.current() == nil)
            let report = try await database.enter(environment("a"), as: "pa", leaving: nil)
            #expect(report.isSwitch && report.from == nil && report.to?.partition.name == "pa")
            let again = try await database.enter(environment("a"), as: "unused", leaving: nil)
            #expect(!again.isSwitch && again.to?.partition.name == "pa")
            let current = try #require(try database.environments.current())
            #expect(current.number == 1 && current.switched == noon)
            #expect(current.partition?.environment == "a" && current.partition?.user == nil)
        }
    }

    @Test("Another environment or user is refused where the caller did not say that the current one may be left")
    func refused() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            await expectFailure(.otherPartition) { try await database.enter(environment("b"), as: "pb", leaving: nil) }
            await expectFailure(.otherPartition) {
                try await database.enter(environment("a"), .user("u"), as: "pu", leaving: nil)
            }
            #expect(try database.environments.list().map(\.name) == ["a"])
            #expect(try database.environments.partitions().map(\.name) == ["pa"])
        }
    }

    @Test(
        "Transfers are parked, carried or given up with the mutations; a mutation stays with the transfer it waits for")
    func transfers() async throws {
        func upload(_ key: String) -> TransferDraft {
            TransferDraft(
                partition: "pa", kind: .upload, bucket: "media", key: key, path: "/file",
                source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
        }
        for work in PendingWork.allCases {
            try await withOperations { database in
                try await database.enter(environment("a"), as: "pa")
                let (fresh, begun, failed) = (upload("fresh"), upload("begun"), upload("failed"))
                try await database.transfers.enqueue([fresh, begun, failed])
                let attempt = try #require(
                    try await database.transfers.begin(begun.id, owner: "me", now: noon)
                ).attempt
                try await database.transfers.note(attempt, [.upload("u")])
                let failing = try #require(
                    try await database.transfers.begin(failed.id, owner: "me", now: noon)
                ).attempt
                try await database.transfers.fail(
                    failing, .init(code: "object.rejected", message: "no", time: noon), now: noon)
                var ids: [UUID] = []
                for transfer in [fresh, begun] {
                    var waiter = draft(transfer.key, in: "pa")
                    waiter.transfers = [transfer.id]
                    ids.append(try await database.enqueue(waiter))
                }
                let report = try await database.enter(environment("b"), as: "pb", leaving: work)
                let before = SwitchReport.Work([.pending: 2], transfers: [.pending: 1, .running: 1, .failed: 1])
                #expect(report.from?.before == before)
                switch work {
                case .park:
                    #expect(report.from?.after == before && report.carriedTransfers == 0)
                    let late = upload("late")
                    await expectFailure(.parked) { try await database.transfers.enqueue([late]) }
                    await expectFailure(.parked) {
                        _ = try await database.transfers.begin(fresh.id, owner: "me", now: noon)
                    }
                case .carry:
                    #expect(report.carried == 1 && report.carriedTransfers == 1)
                    #expect(try database.mutation(ids[0])?.partition == "pb")
                    #expect(try database.transfers.find(fresh.id)?.partition == "pb")
                    #expect(try database.mutation(ids[1])?.partition == "pa")
                    #expect(report.from?.after.transfers == 1 && report.to?.after.transfers == 1)
                case .discard:
                    #expect(report.discarded == 2 && report.discardedTransfers == 3)
                    #expect(try database.transfers.find(fresh.id)?.state == .cancelled)
                    #expect(try database.transfers.find(begun.id)?.state == .cancelling)
                }
            }
        }
    }

    @Test("A switch that gives up what has not ended cancels a paused transfer as well")
    func pausedTransfer() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let transfer = TransferDraft(
                partition: "pa", kind: .upload, bucket: "media", key: "paused", path: "/file",
                source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
            try await database.transfers.enqueue([transfer])
            try await database.transfers.pause(transfer.id)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .discard)
            #expect(report.discardedTransfers == 1)
            #expect(try database.transfers.find(transfer.id)?.state == .cancelled)
        }
    }

    @Test("A switch tells of dead letters, which stay where they are")
    func deadLetters() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            try await database.setAside(try await database.enqueue(draft(in: "pa")))
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.from?.before == SwitchReport.Work([.deadLetter: 1]))
            #expect(report.from?.before.deadLetters == 1 && report.from?.after.deadLetters == 1)
            #expect(report.to?.after.deadLetters == 0)
        }
    }

    @Test("A transfer that was begun before is not carried, though it is pending again or paused")
    func begunBefore() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let transfers = ["released", "paused", "fresh"].map { key in
                TransferDraft(
                    partition: "pa", kind: .upload, bucket: "media", key: key, path: "/file",
                    source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
            }
            try await database.transfers.enqueue(transfers)
            for transfer in transfers.prefix(2) {
                let begun = try #require(try await database.transfers.begin(transfer.id, owner: "me", now: noon))
                try await database.transfers.release(begun.attempt)
            }
            try await database.transfers.pause(transfers[1].id)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carriedTransfers == 1)
            #expect(try transfers.map { try database.transfers.find($0.id)?.partition } == ["pa", "pa", "pb"])
        }
    }

    @Test("A transfer that waits, paused or not, goes along; with one that stays, all that wait for it stay")
    func sharedTransfer() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let transfers = ["paused", "shared"].map { key in
                TransferDraft(
                    partition: "pa", kind: .upload, bucket: "media", key: key, path: "/file",
                    source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
            }
            try await database.transfers.enqueue(transfers)
            try await database.transfers.pause(transfers[0].id)
            let flying = try await database.enqueue(draft("flying", in: "pa"))
            _ = try await database.begin(flying)
            var waiters = [draft("one", in: "pa", dependencies: [flying]), draft("two", in: "pa")]
            for index in waiters.indices { waiters[index].transfers = [transfers[1].id] }
            let ids = try await database.mutations.enqueue(waiters).map(\.id)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carried == 0 && report.carriedTransfers == 1)
            #expect(try transfers.map { try database.transfers.find($0.id)?.partition } == ["pb", "pa"])
            for id in ids { #expect(try database.mutation(id)?.partition == "pa") }
        }
    }

    @Test("A dead letter keeps none of its lane that comes after it")
    func carriedBehindDeadLetter() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let dead = try await database.enqueue(draft("lane", in: "pa"))
            let next = try await database.enqueue(draft("lane", in: "pa"))
            try await database.setAside(dead)
            #expect(try await database.enter(environment("b"), as: "pb", leaving: .carry).carried == 1)
            #expect(try database.mutation(next)?.partition == "pb")
            #expect(try database.mutation(dead)?.partition == "pa")
        }
    }

    @Test("Parked mutations stay as they are, and can neither be queued nor begun until the way back")
    func parked() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let first = try await database.enqueue(draft(in: "pa"))
            let report = try await database.enter(environment("b"), as: "pb")
            #expect(report.from?.before == SwitchReport.Work([.pending: 1]))
            #expect(report.from?.after == SwitchReport.Work([.pending: 1]))
            await expectFailure(.parked) { _ = try await database.enqueue(draft(in: "pa")) }
            await expectFailure(.parked) { _ = try await database.begin(first) }
            _ = try await database.enqueue(draft(in: "pb"))
            try await database.enter(environment("a"), as: "unused")
            #expect(try database.currentName == "pa")
            try await database.complete(first)
        }
    }

    @Test("An answer that comes late lands in its own partition, and nothing more is begun there")
    func late() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let (first, second) = (
                try await database.enqueue(draft(in: "pa")), try await database.enqueue(draft(in: "pa"))
            )
            let attempt = try await database.begin(first).attempt
            try await database.enter(environment("b"), as: "pb")
            let next = try await database.mutations.answer(
                attempt, json("{}"), temporaryIDs: [:], beginningNextAs: "me", now: noon)
            #expect(next == nil)
            try await database.mutations.settle(first, now: noon)
            #expect(try database.outcome(first)?.partition == "pa")
            #expect(try database.state(second) == .pending)
        }
    }

    @Test("Carried mutations keep their order, and leave behind what waits for one that stays")
    func carried() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let flying = try await database.enqueue(draft("flying", in: "pa"))
            let waiting = try await database.enqueue(draft("waiting", in: "pa", dependencies: [flying]))
            let behind = try await database.enqueue(draft("behind", in: "pa", dependencies: [waiting]))
            let dead = try await database.enqueue(draft("dead", in: "pa"))
            let id = TemporaryID()
            let maker = try await database.enqueue(draft("free", in: "pa", temporaryIDs: [id]))
            let user = try await database.enqueue(draft("free", in: "pa", variables: #"{"id":"\#(id.text)"}"#))
            let used = try await database.enqueue(draft("key", in: "pa", key: "k"))
            _ = try await database.begin(flying)
            try await database.setAside(dead)
            try await database.enter(environment("b"), as: "pb")
            let other = try await database.enqueue(draft("own", in: "pb", key: "k"))
            try await database.enter(environment("a"), as: "unused")
            let report = try await database.enter(environment("b"), as: "unused", leaving: .carry)
            #expect(report.carried == 2)
            #expect(report.from?.after == SwitchReport.Work([.pending: 3, .inFlight: 1, .deadLetter: 1]))
            #expect(report.to?.before == SwitchReport.Work([.pending: 1]))
            #expect(report.to?.after == SwitchReport.Work([.pending: 3]))
            for mutation in [maker, user, other] { #expect(try database.mutation(mutation)?.partition == "pb") }
            for mutation in [flying, waiting, behind, dead, used] {
                #expect(try database.mutation(mutation)?.partition == "pa")
            }
            #expect(try database.heads("pb") == [maker, other])
            try await database.complete(maker, temporaryIDs: [id: "real"])
            #expect(try database.mutation(user)?.content.variables == json(#"{"id":"real"}"#))
        }
    }

    @Test("The second of a lane stays while the first is in flight, and goes along once the first is settled")
    func carriedLane() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let first = try await database.enqueue(draft("lane", in: "pa"))
            let others = [
                try await database.enqueue(draft("lane", in: "pa")),
                try await database.enqueue(draft("lane", in: "pa")),
            ]
            let beside = try await database.enqueue(draft("beside", in: "pa"))
            let attempt = try await database.begin(first).attempt
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carried == 1)
            #expect(try database.mutation(beside)?.partition == "pb")
            for other in others { #expect(try database.mutation(other)?.partition == "pa") }
            #expect(try database.heads("pb") == [beside])
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            try await database.mutations.settle(first, now: noon)
            try await database.enter(environment("a"), as: "unused")
            #expect(try await database.enter(environment("b"), as: "unused", leaving: .carry).carried == 2)
        }
    }

    @Test(
        "A mutation replayed though it may have taken effect is sent where it was, and not carried to another backend"
    )
    func carriedReplay() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            for kind in [MutationFailure.Class.outcomeUnknown, .serverFault, .restored, .rejected] {
                let id = try await database.enqueue(draft(kind.rawValue, in: "pa"))
                _ = try await database.begin(id)
                try await database.mutations.setAside(
                    id, expecting: .inFlight, MutationFailure(kind, message: "it failed", time: noon), now: noon)
                try await database.mutations.replay(id, now: noon)
            }
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carried == 1)
            try await database.enter(environment("a"), as: "unused")
            let left = try database.mutations.list(MutationFilter(partition: "pa"))
            #expect(left.map(\.lane).sorted() == ["outcomeUnknown", "restored", "serverFault"])
            for mutation in left { #expect(try await database.begin(mutation.id).telling != nil) }
        }
    }

    @Test("A mutation that an earlier attempt may have carried out stays, with its successors in the lane")
    func carriedDoubt() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            func failed(_ lane: String, _ kind: MutationFailure.Class) async throws -> UUID {
                let id = try await database.enqueue(draft(lane, in: "pa"))
                let attempt = try await database.begin(id).attempt
                try await database.mutations.retryLater(
                    attempt, at: nil, MutationFailure(kind, message: "it failed", time: noon), now: noon)
                return id
            }
            let doubtful = [
                try await failed("lost", .outcomeUnknown), try await failed("fault", .serverFault),
                try await failed("back", .restored),
            ]
            let after = try await database.enqueue(draft("lost", in: "pa"))
            let unsent = [
                try await failed("offline", .offline), try await failed("guest", .notSignedIn),
                try await failed("busy", .throttled),
            ]
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carried == unsent.count)
            for id in doubtful + [after] { #expect(try database.mutation(id)?.partition == "pa") }
            for id in unsent { #expect(try database.mutation(id)?.partition == "pb") }
        }
    }

    @Test("A temporary id goes along with the mutation that reserved it, for mutations queued after the switch")
    func carriedTemporaryID() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let id = TemporaryID()
            let maker = try await database.enqueue(draft("maker", in: "pa", temporaryIDs: [id]))
            try await database.enter(environment("b"), as: "pb", leaving: .carry)
            let user = try await database.enqueue(draft("user", in: "pb", variables: #"{"id":"\#(id.text)"}"#))
            #expect(try database.mutation(user)?.dependencies == [maker])
            try await database.complete(maker, temporaryIDs: [id: "real"])
            #expect(try database.mutation(user)?.content.variables == json(#"{"id":"real"}"#))
        }
    }

    @Test("A mutation that took effect at the destination under its idempotency key stays, and is not sent there again")
    func carriedKey() async throws {
        try await withOperations { database in
            try await database.enter(environment("b"), as: "pb")
            try await database.complete(try await database.enqueue(draft(in: "pb", key: "k")))
            try await database.enter(environment("a"), as: "pa")
            let repeated = try await database.enqueue(draft(in: "pa", key: "k"))
            let report = try await database.enter(environment("b"), as: "unused", leaving: .carry)
            #expect(report.carried == 0)
            #expect(try database.mutation(repeated)?.partition == "pa")
        }
    }

    @Test("A mutation whose key is queued at the destination stays, and one whose key was given up there goes along")
    func keysAtDestination() async throws {
        try await withOperations { database in
            try await database.enter(environment("b"), as: "pb")
            _ = try await database.enqueue(draft("queued", in: "pb", key: "queued"))
            let given = try await database.enqueue(draft("given", in: "pb", key: "given"))
            try await database.setAside(given)
            _ = try await database.mutations.discard(given, dependents: .release, now: noon)
            try await database.enter(environment("a"), as: "pa")
            let stays = try await database.enqueue(draft("queued", in: "pa", key: "queued"))
            let goes = try await database.enqueue(draft("given", in: "pa", key: "given"))
            #expect(try await database.enter(environment("b"), as: "unused", leaving: .carry).carried == 1)
            #expect(try database.mutation(stays)?.partition == "pa")
            #expect(try database.mutation(goes)?.partition == "pb")
        }
    }

    @Test("Discarded mutations leave their outcomes, and what is in flight stays")
    func discarded() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let flying = try await database.enqueue(draft("flying", in: "pa"))
            let (pending, dead) = (
                try await database.enqueue(draft(in: "pa")), try await database.enqueue(draft("d", in: "pa"))
            )
            _ = try await database.begin(flying)
            try await database.setAside(dead)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .discard)
            #expect(report.discarded == 2)
            #expect(report.from?.after == SwitchReport.Work([.inFlight: 1]))
            for mutation in [pending, dead] { #expect(try database.outcome(mutation)?.kind == .discarded) }
        }
    }

    @Test("A mutation that waits for one in flight, or comes after it in its lane, is discarded")
    func discardedBehindFlight() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let flying = try await database.enqueue(draft("lane", in: "pa"))
            let next = try await database.enqueue(draft("lane", in: "pa"))
            let waiting = try await database.enqueue(draft("other", in: "pa", dependencies: [flying]))
            _ = try await database.begin(flying)
            let report = try await database.enter(environment("b"), as: "pb", leaving: .discard)
            #expect(report.discarded == 2)
            #expect(report.from?.after == SwitchReport.Work([.inFlight: 1]))
            for mutation in [next, waiting] { #expect(try database.outcome(mutation)?.kind == .discarded) }
        }
    }

    @Test("Leaving for no environment parks everything, and any may be entered then")
    func none() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "pa")
            let report = try await database.environments.leave(.park, now: noon)
            #expect(report.isSwitch && report.to == nil && report.from?.partition.name == "pa")
            #expect(try database.environments.current()?.partition == nil)
            await expectFailure(.parked) { _ = try await database.enqueue(draft(in: "pa")) }
            try await database.enter(environment("b"), as: "pb", leaving: nil)
            #expect(try database.currentName == "pb")
            #expect(try database.environments.current()?.number == 3)
        }
    }

    @Test("Leaving where nothing is the current one is no switch, and is noted where nothing was chosen yet")
    func noneAlready() async throws {
        try await withOperations { database in
            for _ in 1...2 {
                #expect(try await database.environments.leave(.park, now: noon) == SwitchReport(isSwitch: false))
                #expect(try database.environments.current()?.number == 1)
            }
            try await database.enter(environment("a"), as: "pa", leaving: nil)
            #expect(try await database.environments.leave(.park, now: noon).isSwitch)
            #expect(try await database.environments.leave(.park, now: noon) == SwitchReport(isSwitch: false))
            #expect(try database.environments.current()?.number == 3)
        }
    }

    @Test("An environment is entered for the user who worked with it last")
    func last() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .last, as: "guest", at: after(1))
            try await database.enter(environment("a"), .user("u"), as: "pu", at: after(2))
            try await database.enter(environment("b"), as: "pb", at: after(3))
            let report = try await database.enter(environment("a"), .last, as: "unused", at: after(4))
            #expect(report.to?.partition.user == "u" && report.to?.partition.name == "pu")
        }
    }

    @Test("An environment is entered for the user who came last, though the clock was set back before")
    func lastWithAnotherClock() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .user("u"), as: "pu", at: after(100))
            try await database.enter(environment("a"), .user("v"), as: "pv", at: after(1))
            try await database.enter(environment("b"), as: "pb", at: after(2))
            let report = try await database.enter(environment("a"), .last, as: "unused", at: after(3))
            #expect(report.to?.partition.user == "v" && report.to?.partition.name == "pv")
        }
    }

    @Test("Two switches in one moment leave the last one's partition the current one's")
    func sameMoment() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), .user("u"), as: "pu")
            try await database.enter(environment("a"), .guest, as: "guest")
            try await database.enter(environment("a"), .user("u"), as: "unused")
            #expect(try await !database.enter(environment("a"), .last, as: "unused", leaving: nil).isSwitch)
            #expect(try database.currentName == "pu")
        }
    }

    @Test("The transfers that are yet to be done are told of, paused ones and those under way too")
    func toldTransfers() {
        let work = SwitchReport.Work(
            transfers: [.pending: 1, .running: 10, .paused: 100, .failed: 2, .cancelling: 3, .done: 4, .cancelled: 5])
        #expect(work.transfers == 111 && work.failedTransfers == 2)
    }

    @Test("A switch carries the transfers of the partition that it leaves, and none of a third")
    func carriedTransfersOfOne() async throws {
        try await withOperations { database in
            var drafts: [TransferDraft] = []
            for name in ["c", "a"] {
                try await database.enter(environment(name), as: "p\(name)")
                let draft = TransferDraft(
                    partition: "p\(name)", kind: .upload, bucket: "media", key: name, path: "/file",
                    source: .init(device: 1, inode: 1, size: 1, modified: 1), created: noon)
                try await database.transfers.enqueue([draft])
                drafts.append(draft)
            }
            let report = try await database.enter(environment("b"), as: "pb", leaving: .carry)
            #expect(report.carriedTransfers == 1)
            #expect(try drafts.map { try database.transfers.find($0.id)?.partition } == ["pc", "pb"])
        }
    }
}

import LarderFiles
import LarderGraphQL
import LarderOperations
import LarderRecords

/// What a partition needs of its cache: what its watchers depend on, what is pinned, and what it has queued.
final class NeededObjects: CollectionRoots {
    private let core: PartitionCore
    /// What the database held when it was looked into last.
    private let seen = Locked<OperationsDatabase.ContentVersion?>(nil)

    init(_ core: PartitionCore) { self.core = core }

    func newlyWatched() -> [Dependencies] { core.watchers.takeNoted(all: false) }

    func needed(fromStart: Bool) throws -> [Dependencies] {
        let watched = core.watchers.takeNoted(all: fromStart)
        guard let database = try core.operationsStore.database(making: false) else { return watched }
        let version: OperationsDatabase.ContentVersion
        do { version = try database.contentVersion() } catch { throw LarderError(error) }
        let last = fromStart ? nil : seen.withLock { $0 }
        guard version != last else { return watched }
        // What this process queues is shown by itself. The cache keeps what the layers touch.
        if version.others != last?.others { try core.layers.reload(database.mutations) }
        let kept = try kept(database)
        seen.withLock { $0 = version }
        return watched + kept
    }

    /// What the answers of pins are made of.
    func pinned() throws(LarderError) -> [Dependencies] {
        guard let database = try core.operationsStore.database(making: false) else { return [] }
        return try kept(database, watchers: false)
    }

    /// What the answers of pins and named watchers are made of.
    private func kept(
        _ database: OperationsDatabase, watchers includesWatchers: Bool = true
    ) throws(LarderError) -> [Dependencies] {
        let (pins, watchers): ([StoredPin], [StoredWatcher])
        do {
            (pins, watchers) = (
                try database.pins.all(in: core.name),
                includesWatchers ? try database.watchers.all(in: core.name) : []
            )
        } catch {
            throw LarderError(error)
        }
        var found: [Dependencies] = []
        for pin in pins {
            do throws(LarderError) { found += try dependencies(ofPinned: pin.operation) } catch {
                throw error.explained("What the pin \(pin.name) keeps is not known; pin another operation, or unpin it")
            }
        }
        for watcher in watchers {
            do throws(LarderError) { found.append(try dependencies(of: watcher.operation)) } catch {
                throw error.explained(
                    "What the watcher \(watcher.name) needs is not known; watch another operation, or remove it")
            }
        }
        return found
    }

    /// What the answer of a pin is made of; where its operation asks for a list of pages, what all loaded pages are.
    private func dependencies(ofPinned operation: GraphQLOperation) throws(LarderError) -> [Dependencies] {
        let operation = try core.withRealIDs(operation)
        guard let list = try? PagedList(operation, core) else { return [try dependencies(of: operation)] }
        var found: [Dependencies] = []
        var seen: Set<PagePosition> = []
        var rest = [PagePosition.start]
        while let position = rest.popLast() {
            guard seen.insert(position).inserted else { continue }
            let answer: CacheAnswer
            do { answer = try core.cache.read(try list.bound(at: position)) } catch {
                throw (error as? RecordError).map(LarderError.parking) ?? LarderError(translating: error)
            }
            found.append(answer.dependencies)
            // A page that is damaged by its server leads nowhere.
            guard answer.response.isComplete, let page = try? list.content(answer.response, at: position) else {
                continue
            }
            rest += [page.next, page.previous].compactMap(\.self)
        }
        return found
    }

    private func dependencies(of operation: GraphQLOperation) throws(LarderError) -> Dependencies {
        let bound = try core.operations.bound(query: core.withRealIDs(operation))
        do { return try core.cache.read(bound).dependencies } catch { throw LarderError.parking(error) }
    }
}

extension LarderError {
    /// The same error, whose message begins with what it leads to.
    fileprivate func explained(_ consequence: String) -> LarderError {
        var error = self
        error.message = "\(consequence): \(message)"
        return error
    }
}

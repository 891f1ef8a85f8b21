import LarderFiles
import LarderGraphQL
import LarderRecords

/// Keeps a stream at the newest state of a list. It watches every page, and one place more at each end, where the next
/// page is to come.
final class PagesWatcher: Sendable {
    /// A page, or the place where one may come.
    fileprivate struct Slot {
        let number: Int
        let position: PagePosition
        /// Whether it is watched, or just about to be.
        var isBegun = false
        var task: Task<Void, Never>?
        var content: PageContent?
        /// The cache keys of its objects. Watchers read again only what was changed, so that their answers may be of
        /// different generations, which have other numbers for the same objects.
        var keys: [ExactText?] = []
        var page: Page?
        var error: LarderError?
        var isOptimistic = false
        /// Whether it was read at all.
        var isRead = false
    }

    fileprivate struct Progress {
        var slots: [Slot] = []
        /// By object: the number of the slot that shows it.
        var owners: [ExactText: Int] = [:]
        var lastNumber = 0
        /// Pages lead back to one that is in the list, at its end or at its front.
        var isCircle = (after: false, before: false)
        var listener: Int?
        var isChanged = true
        var isEnded = false
    }

    private let list: PagedList
    private let holding: PagesHolding
    private let update: PagesWatch.Update
    private let continuation: AsyncStream<PagesState>.Continuation
    private let progress = Locked(Progress())

    init(
        _ list: PagedList, _ holding: PagesHolding, _ update: PagesWatch.Update,
        _ continuation: AsyncStream<PagesState>.Continuation
    ) {
        (self.list, self.holding, self.update, self.continuation) = (list, holding, update, continuation)
    }

    func start() {
        let listener = holding.listen { [weak self] in self?.publish() }
        progress.withLock { progress in
            progress.listener = listener
            progress.addSlot(.start, at: 0)
        }
        watchNew()
    }

    func end() {
        let (tasks, listener) = progress.withLock { progress in
            progress.isEnded = true
            defer { progress.slots = [] }
            return (progress.slots.compactMap(\.task), progress.listener)
        }
        if let listener { holding.remove(listener) }
        for task in tasks { task.cancel() }
        continuation.finish()
    }

    // MARK: Slots

    /// Begins to watch slots that were added.
    private func watchNew() {
        // One caller begins each slot: other threads come here while the first page is read.
        let new = progress.withLock { $0.takeNew() }
        for (number, position) in new {
            let bound: BoundOperation
            do throws(LarderError) { bound = try list.bound(at: position) } catch {
                take(WatchState(error: error), number)
                continue
            }
            let (states, pageContinuation) = AsyncStream.makeStream(
                of: WatchState.self, bufferingPolicy: .bufferingNewest(1))
            list.core.watchers.shared.watch(bound, .query, list.core, pageContinuation)
            let task = Task { [weak self] in
                for await state in states { self?.take(state, number) }
                // The partition was parked or closed, unless the page has gone.
                if !Task.isCancelled { self?.end() }
            }
            let isWanted = progress.withLock { progress in
                guard let index = progress.index(of: number) else { return false }
                progress.slots[index].task = task
                return true
            }
            if !isWanted { task.cancel() }
        }
    }

    /// Takes in what is at a slot now.
    private func take(_ state: WatchState, _ number: Int) {
        let position = progress.withLock { progress in
            progress.index(of: number).map { progress.slots[$0].position }
        }
        guard let position else { return }
        var content: PageContent?
        var failure = state.error
        if let response = state.complete {
            do throws(LarderError) { content = try list.content(response, at: position) } catch { failure = error }
        }
        let (read, error) = (content, failure)
        let keys = read.map(list.keys) ?? []
        let gone = progress.withLock { progress in
            progress.take(read, keys, error, state.isOptimistic, at: number)
        }
        for task in gone { task.cancel() }
        watchNew()
        publish()
    }

    private func publish() {
        let isHeld = update == .whenComplete && holding.isHolding
        progress.withLock { progress in
            // Until every slot was read the list is not known; what reads the last one publishes.
            guard !progress.isEnded, !isHeld, progress.isChanged, progress.slots.allSatisfy(\.isRead) else { return }
            let isComplete = progress.isComplete(atFront: list.goesBackward)
            guard update == .progressively || isComplete else { return }
            progress.isChanged = false
            // Inside the lock, so that states come in their order.
            continuation.yield(
                PagesState(
                    pages: progress.slots.compactMap(\.page), isComplete: isComplete,
                    isOptimistic: progress.slots.contains(where: \.isOptimistic),
                    error: progress.slots.lazy.compactMap(\.error).first
                        ?? (progress.isCircle.after || progress.isCircle.before ? list.repeated() : nil))
            )
        }
    }
}

extension PagesWatcher.Progress {
    func index(of number: Int) -> Int? { slots.firstIndex { $0.number == number } }

    /// The slots that are not watched yet.
    mutating func takeNew() -> [(number: Int, position: PagePosition)] {
        var new: [(number: Int, position: PagePosition)] = []
        for index in slots.indices where !slots[index].isBegun {
            slots[index].isBegun = true
            new.append((slots[index].number, slots[index].position))
        }
        return new
    }

    /// Whether the page at which the list grows says that none follows.
    func isComplete(atFront: Bool) -> Bool {
        guard let edge = (atFront ? slots.first : slots.last)?.content else { return false }
        return atFront ? edge.previous == nil && !isCircle.before : edge.next == nil && !isCircle.after
    }

    private func has(_ position: PagePosition?) -> Bool { slots.contains { $0.position == position } }

    mutating func addSlot(_ position: PagePosition, at index: Int) {
        lastNumber += 1
        slots.insert(PagesWatcher.Slot(number: lastNumber, position: position), at: index)
    }

    /// - Returns: The tasks of slots that are no part of the list any more.
    mutating func take(
        _ content: PageContent?, _ keys: [ExactText?], _ error: LarderError?, _ isOptimistic: Bool, at number: Int
    ) -> [Task<Void, Never>] {
        guard let index = index(of: number), let start = slots.firstIndex(where: { $0.position == .start }) else {
            return []
        }
        let (old, oldKeys) = (slots[index].content, slots[index].keys)
        (slots[index].content, slots[index].keys) = (content, keys)
        if !slots[index].isRead || content?.response != old?.response || slots[index].isOptimistic != isOptimistic
            || slots[index].error?.code != error?.code
        {
            isChanged = true
        }
        (slots[index].error, slots[index].isOptimistic, slots[index].isRead) = (error, isOptimistic, true)
        var gone: [PagesWatcher.Slot] = []
        if index >= start { gone += follow(content?.next, after: index) }
        if index <= start { gone += follow(content?.previous, before: index) }
        if !gone.isEmpty { isChanged = true }
        // Which page shows an object changes only where pages have other objects than before.
        let isNew = old == nil && index == slots.count - 1 || old == nil && slots.lazy.compactMap(\.page).isEmpty
        if gone.contains(where: { $0.content != nil }) || !isNew && oldKeys != keys {
            owners = [:]
            for index in slots.indices { show(index) }
        } else if let index = self.index(of: number) {
            show(index)
        }
        return gone.compactMap(\.task)
    }

    /// Makes the slot after an index that of a position. Where the slot had another position, it and all slots after it
    /// go.
    private mutating func follow(_ position: PagePosition?, after index: Int) -> [PagesWatcher.Slot] {
        if let position, slots.indices.contains(index + 1), slots[index + 1].position == position { return [] }
        let gone = Array(slots[(index + 1)...])
        slots.removeSubrange((index + 1)...)
        isCircle.after = has(position)
        if let position, !isCircle.after { addSlot(position, at: slots.count) }
        return gone
    }

    private mutating func follow(_ position: PagePosition?, before index: Int) -> [PagesWatcher.Slot] {
        if let position, index > 0, slots[index - 1].position == position { return [] }
        let gone = Array(slots[..<index])
        slots.removeSubrange(..<index)
        isCircle.before = has(position)
        if let position, !isCircle.before { addSlot(position, at: 0) }
        return gone
    }

    /// Makes the page of a slot, whose objects are its own where no other page shows them.
    private mutating func show(_ index: Int) {
        guard let content = slots[index].content else {
            slots[index].page = nil
            return
        }
        let number = slots[index].number
        var shown: Set<ExactText> = []
        var objects: [ResponseValue] = []
        for (object, key) in zip(content.objects, slots[index].keys) {
            if let key {
                let owner = owners[key] ?? number
                owners[key] = owner
                guard owner == number, shown.insert(key).inserted else { continue }
            }
            objects.append(object)
        }
        slots[index].page = Page(response: content.response, objects: objects)
    }
}

import LarderFiles
import LarderGraphQL
import LarderRecords

/// Keeps a stream at the newest state of a list. It watches every page, and one place more at each end, where the next
/// page is to come.
///
/// A commit marks the pages that it concerns. All that are marked are read again in one snapshot before anything is
/// shown, so that pages are shown together as they were at one time.
final class PagesWatcher: Sendable {
    /// A page, or the place where one may come.
    fileprivate struct Slot {
        let number: Int
        let position: PagePosition
        /// In the index of watchers; nil until it is read.
        var id: WatcherIndex.WatcherID?
        /// Of the answer whose dependencies the index has.
        var footprint: Footprint?
        var content: PageContent?
        /// The cache keys of its objects. Pages are read again only where they changed, so that their answers may be of
        /// different generations, which have other numbers for the same objects.
        var keys: [ExactText?] = []
        var page: Page?
        var error: LarderError?
        var isOptimistic = false
        /// Whether it was read at all.
        var isRead = false
    }

    /// What a reading found at a slot.
    fileprivate struct Finding {
        var content: PageContent?
        var keys: [ExactText?] = []
        var error: LarderError?
        var isOptimistic = false
    }

    fileprivate struct Progress {
        /// Those after the first page's have ascending numbers, those before it descending ones.
        var slots: [Slot] = []
        /// How many are before the first page's.
        var frontCount = 0
        var positions: Set<PagePosition> = []
        /// The numbers of the slots that are to be read.
        var marked: Set<Int> = []
        /// Whether some that were marked are being read.
        var isReading = false
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
    private let reading = MarkedReading()
    private let progress = Locked(Progress())

    private var watchers: WatcherIndex { list.core.watchers }

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
        Task { reading.run(read) }
    }

    func end() {
        let (ids, listener) = progress.withLock { progress in
            progress.isEnded = true
            defer { (progress.slots, progress.frontCount, progress.marked) = ([], 0, []) }
            return (progress.slots.compactMap(\.id), progress.listener)
        }
        reading.end()
        if let listener { holding.remove(listener) }
        for id in ids { watchers.remove(id) }
        continuation.finish()
    }

    // MARK: Reading

    private func mark(_ number: Int) {
        progress.withLock { progress in
            if !progress.isEnded { progress.marked.insert(number) }
        }
        reading.mark(read)
    }

    /// Reads what is marked, and the places to which that leads, and shows the list.
    private func read() -> Duration {
        while true {
            let moment = watchers.published
            let slots = progress.withLock { progress in
                let slots = progress.marked.compactMap(progress.index).sorted().map { progress.slots[$0] }
                (progress.marked, progress.isReading) = ([], !slots.isEmpty)
                return slots
            }
            if slots.isEmpty { break }
            read(slots, at: moment)
        }
        publish()
        return .zero
    }

    private func read(_ slots: [Slot], at moment: UInt64) {
        var known: [(slot: Slot, bound: BoundOperation)] = []
        for slot in slots {
            do throws(LarderError) { known.append((slot, try list.bound(at: slot.position))) } catch {
                take(Finding(error: error), slot.number)
            }
        }
        do throws(RecordError) {
            let answers = try list.core.cache.read(known.map(\.bound))
            for ((slot, _), answer) in zip(known, answers) {
                guard let id = identifier(of: slot) else { continue }
                let footprint = answer.footprint
                // What concerns the same dependencies as before has marked the slot.
                if slot.footprint != footprint, !watchers.set(answer.dependencies, of: id, readAt: moment) {
                    mark(slot.number)
                }
                take(finding(answer, at: slot.position), slot.number, footprint)
            }
        } catch {
            // What they depend on is not known: any commit may be the one after which they can be read.
            for (slot, _) in known {
                if error.code != .closed, let id = identifier(of: slot),
                    !watchers.setAnything(of: id, readAt: moment)
                {
                    mark(slot.number)
                }
                var finding = Finding(content: slot.content, keys: slot.keys, isOptimistic: slot.isOptimistic)
                finding.error = LarderError.parking(error)
                take(finding, slot.number)
            }
        }
    }

    /// The number of a slot in the index, into which it comes when it is read first; nil where all has ended.
    private func identifier(of slot: Slot) -> WatcherIndex.WatcherID? {
        if let id = slot.id { return id }
        let id = watchers.add { [weak self] commit in
            guard let self else { return }
            if commit == nil { self.end() } else { self.mark(slot.number) }
        }
        guard let id else {
            end()
            return nil
        }
        let isWanted = progress.withLock { progress in
            guard let index = progress.index(of: slot.number) else { return false }
            progress.slots[index].id = id
            return true
        }
        if !isWanted { watchers.remove(id) }
        return isWanted ? id : nil
    }

    private func finding(_ answer: CacheAnswer, at position: PagePosition) -> Finding {
        var finding = Finding(isOptimistic: answer.isOptimistic)
        guard answer.response.isComplete else { return finding }
        do throws(LarderError) {
            let content = try list.content(answer.response, at: position)
            (finding.content, finding.keys) = (content, list.keys(of: content))
        } catch { finding.error = error }
        return finding
    }

    /// Takes in what is at a slot now.
    private func take(_ finding: Finding, _ number: Int, _ footprint: Footprint? = nil) {
        let gone = progress.withLock { progress in
            if list.countsPlaces { progress.markNeighbours(of: number, thatHas: finding.content) }
            return progress.take(finding, footprint, at: number)
        }
        for id in gone { watchers.remove(id) }
    }

    private func publish() {
        let isHeld = update == .whenComplete && holding.isHolding
        progress.withLock { progress in
            // What is marked is read next, and shown then.
            guard !progress.isEnded, !isHeld, progress.isChanged, !progress.isReading, progress.marked.isEmpty
            else { return }
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
    /// - Complexity: O(log n) in the slots.
    func index(of number: Int) -> Int? {
        func first(in range: Range<Int>, where isThere: (Int) -> Bool) -> Int? {
            var (low, high) = (range.lowerBound, range.upperBound)
            while low < high {
                let middle = (low + high) / 2
                if isThere(slots[middle].number) { high = middle } else { low = middle + 1 }
            }
            return range.contains(low) && slots[low].number == number ? low : nil
        }
        return first(in: frontCount..<slots.count) { $0 >= number } ?? first(in: 0..<frontCount) { $0 <= number }
    }

    /// Whether the page at which the list grows says that none follows.
    func isComplete(atFront: Bool) -> Bool {
        guard let edge = (atFront ? slots.first : slots.last)?.content else { return false }
        return atFront ? edge.previous == nil && !isCircle.before : edge.next == nil && !isCircle.after
    }

    mutating func addSlot(_ position: PagePosition, at index: Int) {
        lastNumber += 1
        slots.insert(PagesWatcher.Slot(number: lastNumber, position: position), at: index)
        positions.insert(position)
        marked.insert(lastNumber)
    }

    /// Marks the pages beside one that is another one now. The commit that stored it has removed the page after it, and
    /// may not have told of that yet.
    mutating func markNeighbours(of number: Int, thatHas content: PageContent?) {
        guard let index = index(of: number), slots[index].isRead else { return }
        let old = slots[index]
        // Elements without a key keep their records when others take their places.
        let isAnother =
            old.keys.contains(nil)
            ? old.content?.response != content?.response : old.content?.records != content?.records
        guard isAnother else { return }
        for neighbour in [index - 1, index + 1] where slots.indices.contains(neighbour) {
            marked.insert(slots[neighbour].number)
        }
    }

    /// - Returns: The watchers of slots that are no part of the list any more.
    mutating func take(
        _ finding: PagesWatcher.Finding, _ footprint: Footprint?, at number: Int
    ) -> [WatcherIndex.WatcherID] {
        guard let index = index(of: number) else { return [] }
        let old = slots[index]
        let (content, keys) = (finding.content, finding.keys)
        (slots[index].content, slots[index].keys, slots[index].footprint) = (content, keys, footprint)
        if !old.isRead || content?.response != old.content?.response || old.isOptimistic != finding.isOptimistic
            || old.error?.code != finding.error?.code
        {
            isChanged = true
        }
        (slots[index].error, slots[index].isOptimistic, slots[index].isRead) = (
            finding.error, finding.isOptimistic, true
        )
        var gone: [PagesWatcher.Slot] = []
        if index >= frontCount { gone += follow(content?.next, after: index) }
        if index <= frontCount { gone += follow(content?.previous, before: index) }
        if !gone.isEmpty { isChanged = true }
        for slot in gone { marked.remove(slot.number) }
        guard let place = self.index(of: number) else { return gone.compactMap(\.id) }
        // Which page shows an object changes only where pages have other objects than before. A page that came, at the
        // end or with objects that no other has, changes nothing for the others.
        let isNew =
            old.content == nil
            && (slots[(place + 1)...].allSatisfy { $0.content == nil }
                || keys.allSatisfy { key in key.map { owners[$0] == nil } ?? true })
        if gone.contains(where: { $0.content != nil }) || !isNew && old.keys != keys {
            owners = [:]
            for index in slots.indices { show(index) }
        } else {
            show(place)
        }
        return gone.compactMap(\.id)
    }

    /// Makes the slot after an index that of a position. Where the slot had another position, it and all slots after it
    /// go.
    private mutating func follow(_ position: PagePosition?, after index: Int) -> [PagesWatcher.Slot] {
        if let position, slots.indices.contains(index + 1), slots[index + 1].position == position { return [] }
        let gone = remove((index + 1)..<slots.count)
        isCircle.after = position.map(positions.contains) ?? false
        if let position, !isCircle.after { addSlot(position, at: slots.count) }
        return gone
    }

    private mutating func follow(_ position: PagePosition?, before index: Int) -> [PagesWatcher.Slot] {
        if let position, index > 0, slots[index - 1].position == position { return [] }
        let gone = remove(0..<index)
        isCircle.before = position.map(positions.contains) ?? false
        frontCount -= gone.count
        if let position, !isCircle.before {
            addSlot(position, at: 0)
            frontCount += 1
        }
        return gone
    }

    private mutating func remove(_ range: Range<Int>) -> [PagesWatcher.Slot] {
        let gone = Array(slots[range])
        slots.removeSubrange(range)
        for slot in gone { positions.remove(slot.position) }
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

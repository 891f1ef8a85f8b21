/// What a collection of garbage did, or would do.
public struct GarbageReport: Sendable, Hashable {
    /// Objects with a cache key that are gone, tombstones included.
    public package(set) var objects = 0
    /// Objects without identity that are gone: each went with the object that held it.
    public package(set) var parts = 0
    /// Cache keys of objects that are gone, now or before.
    public package(set) var keys = 0
    /// The bytes of all that is gone, without what LMDB adds. They are used again; compacting gives them back.
    public package(set) var bytes = 0
    /// Objects that stay, those without identity included.
    public package(set) var kept = 0
    /// How often marking began again, because the log of changes did not tell what other writes had changed.
    public package(set) var restarts = 0
    /// False if the task was cancelled before the end. What is gone is gone all the same.
    public package(set) var isFinished = false

    package init() {}

    /// Takes in what a later collection did.
    package mutating func add(_ later: GarbageReport) {
        objects += later.objects
        parts += later.parts
        keys += later.keys
        bytes += later.bytes
        restarts += later.restarts
        (kept, isFinished) = (later.kept, later.isFinished)
    }
}

/// How far a collection of garbage has come.
public struct GarbageProgress: Sendable, Hashable {
    /// Records that were reached so far, and so stay.
    public let marked: Int
    /// Objects and keys that were removed so far.
    public let removed: Int
}

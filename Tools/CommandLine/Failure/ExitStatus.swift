/// What a tool's exit status says. The numbers are a promise to scripts.
package enum ExitStatus: Int32 {
    case success = 0
    /// It was tried and failed: no store, no server, no room.
    case failure = 1
    /// The arguments, or the files that they name, cannot be used.
    case usage = 2
    /// What was asked for is not known, or something is yet to be done.
    case miss = 3
    /// It is possible and was not done: without `--write`, without permission, or for a newer program only.
    case refused = 4
    /// The store's files are damaged.
    case damaged = 5
}

extension TransferRunner {
    /// A step that an attempt has just done, as it reports it to the runner; a test may kill the program there.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// It is noted as running.
        case begun
        /// The storage is about to be asked to begin an upload in parts, and that is noted.
        case uploadAsked
        /// The storage has begun an upload in parts, and it is not noted.
        case uploadBegun
        /// Its name is noted.
        case uploadNoted
        /// A file is handed over to be sent outside of this program.
        case handedOver
        /// The storage has a part, and it is not noted.
        case partSent
        /// A part is noted.
        case partNoted
        /// The storage has the object, and it is not noted.
        case objectMade
        /// The file of a download is in its place, and it is not noted.
        case fileMoved
        /// The transfer is noted as done.
        case finished
    }
}

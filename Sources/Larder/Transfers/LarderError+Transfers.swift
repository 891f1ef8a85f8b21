extension LarderError.Code {
    /// There is no file to be uploaded.
    public static let sourceMissing = Self(rawValue: "transfer.sourceMissing")
    /// The file that is to be uploaded may not be read, the disk failed, or the file says that it has 0 bytes and has
    /// some.
    public static let sourceUnreadable = Self(rawValue: "transfer.sourceUnreadable")
    /// The path to upload names a folder, or no file with an end.
    public static let sourceNotFile = Self(rawValue: "transfer.sourceNotFile")
    /// The file is another, or was written to, since the upload was queued.
    public static let sourceChanged = Self(rawValue: "transfer.sourceChanged")
    /// Something is where the download is to go, and may not be replaced.
    public static let destinationExists = Self(rawValue: "transfer.destinationExists")
    /// No file can be made where the download is to go: there is no folder, it may not be written, a folder is there,
    /// or the name is too long.
    public static let destinationUnusable = Self(rawValue: "transfer.destinationUnusable")
    /// The disk has no room for the download.
    public static let diskFull = Self(rawValue: "transfer.diskFull")
    /// The bytes that arrived are not the ones that the storage says the object has.
    public static let damagedDownload = Self(rawValue: "transfer.damaged")
    /// The bytes do not have the expected SHA-256: the bytes of the file to send, or of the object.
    public static let otherContent = Self(rawValue: "transfer.otherContent")
    /// The object or the options cannot be: an empty key, one of more than 1,024 bytes, metadata of more than 2 KiB.
    public static let invalidTransfer = Self(rawValue: "transfer.invalid")
    /// No transfer of this id is known.
    public static let unknownTransfer = Self(rawValue: "transfer.unknown")
    /// The transfer has not ended in time; it goes on.
    public static let unfinishedTransfer = Self(rawValue: "transfer.unfinished")
    /// The runner does not have the storage that the transfer names; the transfer waits.
    public static let noStorage = Self(rawValue: "transfer.noStorage")
    /// The store is a copy of another one, which may have sent the file since.
    public static let restoredTransfer = Self(rawValue: "transfer.restored")
    /// The transfer was given up.
    public static let cancelledTransfer = Self(rawValue: "transfer.cancelled")
    /// The transfer's time was over before it was done.
    public static let expiredTransfer = Self(rawValue: "transfer.expired")
}

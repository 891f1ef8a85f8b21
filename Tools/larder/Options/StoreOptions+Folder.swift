import LarderCommandLine

extension StoreOptions {
    func folder() throws(Failure) -> StoreFolder { try StoreFolder(url: url()) }
}

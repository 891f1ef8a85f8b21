import Foundation

/// Takes the room that there is for files, and gives it back.
struct ScarceRoom: Sendable {
    enum Kind: String {
        /// This process may write no further into any file than a few kilobytes.
        case limit
        /// The volume, which is this process's alone, is filled to its last byte.
        case volume
    }

    let kind: Kind
    /// How many bytes are left.
    let left: Int
    private let ballast: URL

    init(_ kind: Kind, left: Int, besides store: URL) {
        self.kind = kind
        self.left = left
        ballast = store.deletingLastPathComponent().appending(path: "ballast")
    }

    func take() throws {
        switch kind {
        case .limit:
            signal(SIGXFSZ, SIG_IGN)
            try setLimit(UInt64(left))
        case .volume:
            let file = Foundation.open(ballast.path, O_WRONLY | O_CREAT, 0o644)
            guard file >= 0 else { throw Failure() }
            let bytes = [UInt8](repeating: 1, count: 1 << 20)
            var count = bytes.count
            // A smaller and smaller piece, until not one byte fits.
            while count > 0 {
                let written = Foundation.write(file, bytes, count)
                if written < count { count = written > 0 ? count - written : count / 2 }
            }
            ftruncate(file, lseek(file, 0, SEEK_END) - off_t(left))
            Foundation.close(file)
        }
    }

    func giveBack() throws {
        switch kind {
        case .limit: try setLimit(nil)
        case .volume: try FileManager.default.removeItem(at: ballast)
        }
    }

    private func setLimit(_ bytes: UInt64?) throws {
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
        let resource = RLIMIT_FSIZE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { throw Failure() }
        limit.rlim_cur = bytes.map { rlim_t($0) } ?? limit.rlim_max
        guard setrlimit(resource, &limit) == 0 else { throw Failure() }
    }

    struct Failure: Error {}
}

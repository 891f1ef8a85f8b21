#if os(Linux)
import Foundation
import Glibc
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("The network as Linux tells of it", .timeLimit(.minutes(10)))
struct RouteConnectivityTests {
    /// A kernel that says what a test wants.
    private final class Kernel: Sendable {
        let hasNetwork: Atomic<Bool>
        private let ends: Mutex<(mine: Int32, given: Int32?)>

        init(hasNetwork: Bool) throws {
            self.hasNetwork = Atomic(hasNetwork)
            var pair: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &pair) == 0)
            ends = Mutex((pair[0], pair[1]))
        }

        deinit { ends.withLock { _ = close($0.mine) } }

        var connectivity: RouteConnectivity {
            RouteConnectivity {
                self.ends.withLock { ends in
                    defer { ends.given = nil }
                    return ends.given.map { RouteSocket(descriptor: $0) }
                }
            } looking: {
                self.hasNetwork.load(ordering: .sequentiallyConsistent)
            }
        }

        func change(to hasNetwork: Bool) {
            self.hasNetwork.store(hasNetwork, ordering: .sequentiallyConsistent)
            say()
        }

        func say() { ends.withLock { _ = send($0.mine, "news", 4, 0) } }
    }

    /// What an observer heard.
    private final class Heard: Sendable {
        private let all = Mutex<[Bool]>([])
        let stream: AsyncStream<Bool>
        private let continuation: AsyncStream<Bool>.Continuation

        init() { (stream, continuation) = AsyncStream.makeStream(of: Bool.self) }

        func hear(_ isConnected: Bool) {
            all.withLock { $0.append(isConnected) }
            continuation.yield(isConnected)
        }

        var list: [Bool] { all.withLock { $0 } }
    }

    @Test("An observer hears that the network has gone, and that it is back, and nothing of other changes")
    func observed() async throws {
        let kernel = try Kernel(hasNetwork: true)
        let (connectivity, heard) = (kernel.connectivity, Heard())
        let observation = connectivity.observe { heard.hear($0) }
        #expect(connectivity.isConnected)
        var news = heard.stream.makeAsyncIterator()
        kernel.say()
        kernel.change(to: false)
        #expect(await news.next() == false && !connectivity.isConnected)
        kernel.say()
        kernel.change(to: true)
        #expect(await news.next() == true && connectivity.isConnected)
        #expect(heard.list == [false, true])
        observation.stop()
    }

    @Test("A machine that has had no network yet counts as connected, and an observer hears of its first")
    func loopback() async throws {
        let kernel = try Kernel(hasNetwork: false)
        let (connectivity, heard) = (kernel.connectivity, Heard())
        let observation = connectivity.observe { heard.hear($0) }
        #expect(connectivity.isConnected)
        var news = heard.stream.makeAsyncIterator()
        kernel.change(to: true)
        #expect(await news.next() == true)
        kernel.change(to: false)
        #expect(await news.next() == false && !connectivity.isConnected)
        observation.stop()
    }

    @Test("Each of two observers hears that the network has gone, and that it is back", .timeLimit(.minutes(1)))
    func twoObservers() async throws {
        let kernel = try Kernel(hasNetwork: true)
        let (connectivity, first, second) = (kernel.connectivity, Heard(), Heard())
        let observations = [first, second].map { heard in connectivity.observe { heard.hear($0) } }
        for isConnected in [false, true] {
            kernel.change(to: isConnected)
            for heard in [first, second] {
                var news = heard.stream.makeAsyncIterator()
                #expect(await news.next() == isConnected)
            }
        }
        for observation in observations { observation.stop() }
    }

    @Test("An observer that was stopped hears nothing more")
    func stopped() async throws {
        let kernel = try Kernel(hasNetwork: true)
        let (connectivity, stopped, other) = (kernel.connectivity, Heard(), Heard())
        connectivity.observe { stopped.hear($0) }.stop()
        let observation = connectivity.observe { other.hear($0) }
        var news = other.stream.makeAsyncIterator()
        kernel.change(to: false)
        #expect(await news.next() == false)
        kernel.change(to: true)
        #expect(await news.next() == true)
        #expect(stopped.list == [])
        observation.stop()
    }

    @Test("An observer hears of changes also after another was stopped", .timeLimit(.minutes(1)))
    func stoppedBeside() async throws {
        let kernel = try Kernel(hasNetwork: true)
        let (connectivity, stopped, other) = (kernel.connectivity, Heard(), Heard())
        let observation = connectivity.observe { other.hear($0) }
        connectivity.observe { stopped.hear($0) }.stop()
        var news = other.stream.makeAsyncIterator()
        kernel.change(to: false)
        #expect(await news.next() == false)
        observation.stop()
    }

    @Test("A route socket is open until its object goes away, and closed then")
    func closed() throws {
        var pair: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &pair) == 0)
        let (mine, given) = (pair[0], pair[1])
        defer { _ = close(mine) }
        var byte: UInt8 = 0
        do {
            let socket = RouteSocket(descriptor: given)
            let count = recv(mine, &byte, 1, 0)
            #expect(count == -1 && socket.descriptor == given)
        }
        // A child that is being started may have it open for a moment.
        var end = pollfd(fd: mine, events: Int16(POLLIN), revents: 0)
        #expect(poll(&end, 1, 10_000) == 1)
        let count = recv(mine, &byte, 1, 0)
        #expect(count == 0)
    }

    @Test("Where the kernel cannot be asked, the network is tried")
    func unknown() {
        let connectivity = RouteConnectivity(opening: { nil }, looking: { false })
        #expect(connectivity.isConnected)
    }

    @Test("Runners and subscriptions ask the system whether there is a network, unless the program says otherwise")
    func standard() {
        let options = RunOptions()
        let all = [
            options.mutations.connectivity, options.transfers.connectivity, SubscriptionPacing().connectivity,
        ]
        #expect(all.allSatisfy { $0 is RouteConnectivity })
    }

    private static let mayMakeNetworks: Bool = {
        let tool = Process()
        tool.executableURL = URL(filePath: "/bin/sh")
        tool.arguments = ["-c", "unshare -rn ip link add v0 type veth peer name v1"]
        (tool.standardOutput, tool.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        guard (try? tool.start()) != nil else { return false }
        tool.waitUntilExit()
        return tool.terminationStatus == 0
    }()

    @Test(
        "A runner goes on by itself when its machine has an address again",
        .enabled(if: ChildProgram.isBuilt && mayMakeNetworks, "needs larder-crash and a network namespace"))
    func namespace() async throws {
        try await withTemporaryFolder { folder in
            let said = try await ChildProgram.run(folder.appending(path: "store"), "network", hasOwnNetwork: true)
            #expect(said == ["at first true", "with an address true", "without it false", "sent true"])
        }
    }
}
#endif

import Crypto
import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

private func expectKeyError(
    _ code: KeyError.Code, containing text: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Void
) async {
    let error = await #expect(throws: KeyError.self, sourceLocation: sourceLocation) { try await body() }
    #expect(error?.code == code, "\(error as Any)", sourceLocation: sourceLocation)
    #expect(text.isEmpty || error?.message.contains(text) == true, "\(error as Any)", sourceLocation: sourceLocation)
}

@Suite("Key files", .timeLimit(.minutes(10)))
struct KeyFileTests {
    private func mode(_ file: URL) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int)
    }

    @Test("A key file is made beside the store and not in it, for its owner alone, whatever the mask")
    func made() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(besides: folder.appending(path: "app"))
            #expect(provider.file.lastPathComponent == "app.key")
            #expect(provider.file.deletingLastPathComponent().lastPathComponent == folder.lastPathComponent)
            await expectKeyError(.missing) { _ = try await provider.keys(within: soon) }
            let made = try await provider.makeKey(within: soon)
            #expect(try mode(provider.file) == 0o600)
            #expect(try await provider.keys(within: soon) == made)
            #expect(try await provider.makeKey(within: soon) == made)
            let again = FileKeyProvider(file: provider.file)
            #expect(try await again.keys(within: soon).current.bytes == made.current.bytes)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["app.key"])
        }
    }

    @Test("Of many that make the file at once all have the same key")
    func race() async throws {
        try await withTemporaryFolder { folder in
            let keys = try await withThrowingTaskGroup(of: MasterKeys.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await FileKeyProvider(file: folder.appending(path: "k")).makeKey(within: soon)
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(keys.count == 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["k"])
        }
    }

    @Test("The maker of a key file whose unfinished file another maker removed takes the other's key")
    func removedMeanwhile() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "k")
            let others = Mutex<MasterKeys?>(nil)
            var provider = FileKeyProvider(file: file)
            provider.files = FileSystem(injecting: { call in
                guard call.kind == .link else { return nil }
                let keys = MasterKeys(current: MasterKey())
                others.withLock { $0 = keys }
                try? Data(KeyText(keys).text.utf8).write(to: file)
                try? FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
                return .failure(ENOENT)
            })
            let made = try await provider.makeKey(within: soon)
            #expect(made == others.withLock { $0 })
            try FileManager.default.removeItem(at: file)
            provider.files = FileSystem(injecting: { $0.kind == .link ? .failure(ENOENT) : nil })
            await expectKeyError(.notWritable) { [provider] in _ = try await provider.makeKey(within: soon) }
            provider.files = FileSystem(injecting: { call in
                guard call.kind == .link else { return nil }
                try? Data("x".utf8).write(to: file)
                return .failure(EACCES)
            })
            await expectKeyError(.notWritable) { [provider] in _ = try await provider.makeKey(within: soon) }
        }
    }

    @Test("The next process removes what a killed maker of a key file left, and nothing else")
    func leftovers() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            func names() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            }
            for name in ["k.new.0123ABCD", "k.new.txt", "k.new.0123ABCDE", "k.new.old-keys", "j.new.0123ABCD"] {
                try Data("x".utf8).write(to: folder.appending(path: name))
            }
            let kept = ["j.new.0123ABCD", "k", "k.new.0123ABCDE", "k.new.old-keys", "k.new.txt"]
            _ = try await provider.makeKey(within: soon)
            #expect(try names() == kept)
            try Data("x".utf8).write(to: folder.appending(path: "k.new.FEDC9876"))
            _ = try await provider.addKey(within: soon)
            #expect(try names() == kept)
        }
    }

    @Test("Keys are added and dropped, by many at once, and none is lost")
    func changed() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            let first = try await provider.makeKey(within: soon).current
            try await withThrowingTaskGroup { group in
                for _ in 0..<10 { group.addTask { _ = try await provider.addKey(within: soon) } }
                try await group.waitForAll()
            }
            let keys = try await provider.keys(within: soon)
            #expect(keys.previous.count == 10)
            #expect(keys.previous.last == first)
            #expect(try mode(provider.file) == 0o600)
            try await provider.dropKeys([first.id, keys.current.id], within: soon)
            let left = try await provider.keys(within: soon)
            #expect(left.current == keys.current)
            #expect(left.previous == keys.previous.dropLast())
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["k"])
        }
    }

    @Test(
        "A key file that others may read is refused with the command that mends it", arguments: [0o604, 0o640, 0o666])
    func exposed(_ mode: Int) async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "it's.key"))
            _ = try await provider.makeKey(within: soon)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: provider.file.path)
            let error = await #expect(throws: KeyError.self) { _ = try await provider.keys(within: soon) }
            #expect(error?.code == .exposed)
            let command = try #require(error?.message.components(separatedBy: "run: ").last)
            let shell = Process()
            shell.executableURL = URL(filePath: "/bin/sh")
            shell.arguments = ["-c", command]
            try shell.start()
            await shell.ended()
            _ = try await provider.keys(within: soon)
        }
    }

    @Test("A file that is larger than any key file is none, however it begins")
    func tooLarge() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            let text = "larder key file 1\n" + String(repeating: "#", count: 1 << 16) + "\n"
            try Data(text.utf8).write(to: provider.file)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: provider.file.path)
            await expectKeyError(.foreign) { _ = try await provider.keys(within: soon) }
            #expect(try Data(contentsOf: provider.file) == Data(text.utf8))
            // As large as one may be.
            try Data(text.utf8.prefix(1 << 16)).write(to: provider.file)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: provider.file.path)
            await expectKeyError(.damaged) { _ = try await provider.keys(within: soon) }
        }
    }

    @Test("A key file that is cut short anywhere is damaged, and nothing overwrites it")
    func truncated() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            _ = try await provider.makeKey(within: soon)
            let whole = try Data(contentsOf: provider.file)
            for count in 0..<whole.count {
                let handle = try FileHandle(forWritingTo: provider.file)
                try handle.truncate(atOffset: 0)
                try handle.write(contentsOf: whole.prefix(count))
                try handle.close()
                await expectKeyError(.damaged) { _ = try await provider.makeKey(within: soon) }
                #expect(try Data(contentsOf: provider.file).count == count)
            }
        }
    }

    @Test("Whatever is changed in a key file is noticed", arguments: [UInt64(5), 6])
    func flipped(_ seed: UInt64) async throws {
        try await withTemporaryFolder { folder in
            var random = SeededNumbers(seed: seed)
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            _ = try await provider.makeKey(within: soon)
            let whole = try Data(contentsOf: provider.file)
            for _ in 0..<200 {
                var bytes = whole
                bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(1 << (random.next() % 8))
                let handle = try FileHandle(forWritingTo: provider.file)
                try handle.write(contentsOf: bytes)
                try handle.close()
                let error = await #expect(throws: KeyError.self, "seed \(seed)") {
                    _ = try await provider.keys(within: soon)
                }
                #expect([.damaged, .foreign, .newerFormat].contains(error?.code), "seed \(seed)")
            }
        }
    }

    @Test("Foreign and newer files, folders and pipes are each told for what they are")
    func foreign() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            func put(_ text: String) throws {
                try Data(text.utf8).write(to: provider.file)
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: provider.file.path)
            }
            try put("-----BEGIN OPENSSH PRIVATE KEY-----\n")
            await expectKeyError(.foreign) { _ = try await provider.keys(within: soon) }
            try put("larder key file 2\nsomething new\n")
            await expectKeyError(.newerFormat, containing: "update the program") {
                _ = try await provider.keys(within: soon)
            }
            try put(String(repeating: "x", count: 1 << 17))
            await expectKeyError(.foreign) { _ = try await provider.keys(within: soon) }
            try FileManager.default.removeItem(at: provider.file)
            try FileManager.default.createDirectory(at: provider.file, withIntermediateDirectories: true)
            await expectKeyError(.foreign) { _ = try await provider.keys(within: soon) }
            try FileManager.default.removeItem(at: provider.file)
            try #require(mkfifo(provider.file.path, 0o600) == 0)
            await expectKeyError(.foreign) { _ = try await provider.keys(within: soon) }
            await expectKeyError(.missing) {
                _ = try await FileKeyProvider(file: folder.appending(path: "none")).addKey(within: soon)
            }
            await expectKeyError(.notWritable) {
                _ = try await FileKeyProvider(file: URL(filePath: "/proc/none/k")).makeKey(within: soon)
            }
        }
    }
}

@Suite("Other key providers", .timeLimit(.minutes(10)))
struct KeyProviderTests {
    @Test("A variable's key is the base64 of 32 bytes, and everything else is told for what it is")
    func variable() async throws {
        let (one, two, three, four) = (MasterKey(), MasterKey(), MasterKey(), MasterKey())
        func provider(_ key: String?, _ previous: String? = nil) -> EnvironmentKeyProvider {
            EnvironmentKeyProvider { ["LARDER_KEY": key, "LARDER_PREVIOUS_KEYS": previous].compactMapValues(\.self) }
        }
        func text(_ key: MasterKey) -> String { Data(key.bytes).base64EncodedString() }
        #expect(try await provider(text(one)).keys(within: soon) == MasterKeys(current: one))
        #expect(
            try await provider(text(one) + "\n", text(two)).keys(within: soon)
                == MasterKeys(current: one, previous: [two]))
        #expect(
            try await provider(text(one), " \(text(two))  \(text(three))\t\n\(text(four)) ").keys(within: soon).previous
                == [two, three, four])
        await expectKeyError(.missing, containing: "openssl rand -base64 32") {
            _ = try await provider(nil).makeKey(within: soon)
        }
        await expectKeyError(.missing) { _ = try await provider("").keys(within: soon) }
        for wrong in ["x", "AAAA", text(one) + "AAAA", Data(one.bytes.dropLast()).base64EncodedString()] {
            let error = await #expect(throws: KeyError.self) { _ = try await provider(wrong).keys(within: soon) }
            #expect(error?.code == .invalid)
            #expect(error?.message.contains(wrong) == false || wrong == "x")
            await expectKeyError(.invalid, containing: "LARDER_PREVIOUS_KEYS") {
                _ = try await provider(text(one), wrong).keys(within: soon)
            }
        }
        await expectKeyError(.cannotRotate) { _ = try await provider(text(one)).addKey(within: soon) }
    }

    @Test("A key is of 32 bytes, and its id tells nothing of it")
    func keys() throws {
        let key = MasterKey()
        #expect(try MasterKey(bytes: key.bytes) == key)
        #expect(key.id.count == 16)
        #expect(!hexadecimal(key.bytes).contains(key.id))
        for count in [0, 31, 33, 64] {
            let error = #expect(throws: KeyError.self) { try MasterKey(bytes: Array(repeating: 0, count: count)) }
            #expect(error?.code == .invalid, "\(count) bytes")
        }
    }

    @Test("The id of a key is the same in every version: stored keys name it")
    func fixedID() throws {
        #expect(try MasterKey(bytes: Array(0..<32)).id == "3ad76bd106d5fa88")
    }

    @Test("A line whose id is not that of its key is damage, also where the checksum is right")
    func foreignID() throws {
        let (mine, other) = (MasterKey(), MasterKey())
        let lines =
            KeyText(MasterKeys(current: mine)).text.replacing(mine.id, with: other.id)
            .split(separator: "\n").dropLast().joined(separator: "\n") + "\n"
        let text = lines + "sum \(hexadecimal(SHA256.hash(data: Data(lines.utf8))))\n"
        let error = #expect(throws: KeyError.self) { _ = try KeyText(parsing: Array(text.utf8), of: "it") }
        #expect(error?.code == .damaged && error?.message.contains("a line is no key") == true)
    }

    #if os(Linux)
    @Test("More keys than a program can be given at once are refused before it is started")
    func tooManyKeys() async throws {
        let tool = ToolRun(program: "/bin/cat", arguments: [], environment: [:], of: "the test")
        await expectKeyError(.notWritable) {
            _ = try await tool.answer(to: Array(repeating: 0x78, count: 4097), until: .now + soon)
        }
    }

    /// A provider whose program is a script.
    private func stand(_ script: String, in folder: URL) async throws -> SecretServiceKeyProvider {
        let tool = folder.appending(path: "secret-tool")
        // By another program: a file that this process has open for writing is open in whatever it starts at the time,
        // and cannot be run meanwhile.
        let text = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\"; chmod 700 \"$0\""
        let writer = ToolRun(
            program: "/bin/sh", arguments: ["-c", text, tool.path, script],
            environment: ProcessInfo.processInfo.environment, of: "the test")
        try #require(try await writer.answer(to: [], until: .now + soon).status == 0)
        return SecretServiceKeyProvider(
            store: "test; rm -rf $HOME", environment: ["PATH": "/nonexistent:\(folder.path)", "SPOT": folder.path])
    }

    @Test("The program is given arguments and no shell, and the keys by its input")
    func arguments() async throws {
        try await withTemporaryFolder { folder in
            let provider = try await stand(
                """
                echo "$@" >> "$SPOT/arguments"
                case $1 in
                store) /bin/cat > "$SPOT/secret" ;;
                lookup) test -f "$SPOT/secret" && /bin/cat "$SPOT/secret" ;;
                esac
                """, in: folder)
            await expectKeyError(.missing) { _ = try await provider.keys(within: soon) }
            let made = try await provider.makeKey(within: soon)
            let added = try await provider.addKey(within: soon)
            #expect(added.previous == [made.current])
            try await provider.dropKeys([made.current.id], within: soon)
            #expect(try await provider.keys(within: soon) == MasterKeys(current: added.current))
            let said = try String(contentsOf: folder.appending(path: "arguments"), encoding: .utf8)
            #expect(said.contains("lookup application larder store test; rm -rf $HOME\n"))
            for key in [made.current, added.current] {
                #expect(!said.contains(Data(key.bytes).base64EncodedString()))
            }
        }
    }

    @Test("Keys that the program does not take are not writable, with what it says")
    func refusedStore() async throws {
        try await withTemporaryFolder { folder in
            let provider = try await stand(
                "case $1 in store) echo 'no room' >&2; exit 1 ;; lookup) exit 1 ;; esac", in: folder)
            await expectKeyError(.notWritable, containing: "no room") { _ = try await provider.makeKey(within: soon) }
        }
    }

    @Test("A keyring that is locked is told as that, in whatever letters the program says it")
    func lockedStore() async throws {
        try await withTemporaryFolder { folder in
            let provider = try await stand(
                "case $1 in store) echo 'The collection is Locked' >&2; exit 1 ;; lookup) exit 1 ;; esac", in: folder)
            await expectKeyError(.locked, containing: "unlock") { _ = try await provider.makeKey(within: soon) }
        }
    }

    @Test("That the program could not look is not that there are no keys, whatever a search says")
    func failedLookup() async throws {
        try await withTemporaryFolder { folder in
            let provider = try await stand("case $1 in lookup) echo 'no bus' >&2; exit 1 ;; esac", in: folder)
            await expectKeyError(.unreadable, containing: "no bus") { _ = try await provider.keys(within: soon) }
            let silent = try await stand("case $1 in lookup) exit 3 ;; esac", in: folder)
            await expectKeyError(.unreadable, containing: "status 3") { _ = try await silent.keys(within: soon) }
        }
    }

    @Test("A program that hangs, fails, is not there or says something else is told for what it is")
    func failures() async throws {
        try await withTemporaryFolder { folder in
            let hanging = try await stand("echo $$ > \"$SPOT/pid\"; exec /bin/sleep 1000", in: folder)
            await expectKeyError(.timedOut) { _ = try await hanging.keys(within: .seconds(3)) }
            let pid = try String(contentsOf: folder.appending(path: "pid"), encoding: .utf8)
            let number = try #require(pid_t(pid.trimmingCharacters(in: .whitespacesAndNewlines)))
            #expect(kill(number, 0) != 0)
            let failing = try await stand("echo 'Could not connect: no bus' >&2; exit 1", in: folder)
            await expectKeyError(.unreadable, containing: "no bus") { _ = try await failing.keys(within: soon) }
            await expectKeyError(.unreadable) { _ = try await failing.makeKey(within: soon) }
            let locked = try await stand("case $1 in lookup) exit 1;; search) echo '[/1]';; esac", in: folder)
            await expectKeyError(.locked) { _ = try await locked.makeKey(within: soon) }
            let other = try await stand("echo a password", in: folder)
            await expectKeyError(.foreign) { _ = try await other.keys(within: soon) }
            let loud = try await stand("/bin/dd if=/dev/zero bs=1000000 count=1 2>/dev/null", in: folder)
            await expectKeyError(.foreign) { _ = try await loud.keys(within: soon) }
            let none = SecretServiceKeyProvider(store: "x", environment: ["PATH": "/nonexistent"])
            await expectKeyError(.unsupported) { _ = try await none.keys(within: soon) }
        }
    }

    @Test("What a program has started ends with it")
    func startedByProgram() async throws {
        try await withTemporaryFolder { folder in
            let pipe = folder.appending(path: "pipe").path
            try #require(mkfifo(pipe, 0o600) == 0)
            let reading = open(pipe, O_RDONLY | O_NONBLOCK)
            try #require(reading >= 0)
            defer { close(reading) }
            var byte: UInt8 = 0
            let provider = try await stand("(echo; exec /bin/sleep 1000) > \"$SPOT/pipe\" & wait", in: folder)
            let asking = Task { try await provider.keys(within: soon) }
            try await eventually { read(reading, &byte, 1) == 1 }
            asking.cancel()
            await expectKeyError(.cancelled) { _ = try await asking.value }
            // The pipe ends when no process has it open for writing any more.
            try await eventually { read(reading, &byte, 1) == 0 }
        }
    }

    private static let hasKeyring = ["secret-tool", "gnome-keyring-daemon", "dbus-run-session"].allSatisfy { name in
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(name)")
        }
    }

    @Test(
        "GNOME's keyring keeps keys, and is locked where it is",
        .enabled(if: hasKeyring, "there is no gnome-keyring-daemon, secret-tool or dbus-run-session"))
    func keyring() async throws {
        try await withTemporaryFolder { folder in
            var environment = ProcessInfo.processInfo.environment
            environment["HOME"] = folder.path
            environment["XDG_DATA_HOME"] = folder.appending(path: "data").path
            environment["XDG_RUNTIME_DIR"] = folder.appending(path: "run").path
            environment["DISPLAY"] = nil
            for name in ["data", "run"] {
                try FileManager.default.createDirectory(
                    at: folder.appending(path: name), withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700])
            }
            /// Runs `body` beside a desktop's session with a keyring.
            func desktop(_ daemon: String, _ body: (SecretServiceKeyProvider) async throws -> Void) async throws {
                let (address, running) = (folder.appending(path: "address"), folder.appending(path: "running"))
                try? FileManager.default.removeItem(at: address)
                try Data().write(to: running)
                let script = """
                    cd "$HOME"
                    \(daemon) --foreground --components=secrets >/dev/null 2>&1 &
                    keyring=$!
                    for i in $(seq 200); do
                        dbus-send --session --print-reply --dest=org.freedesktop.DBus / \\
                            org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true && break
                        sleep 0.05
                    done
                    echo $DBUS_SESSION_BUS_ADDRESS > address.new; mv address.new address
                    while test -e running; do sleep 0.05; done
                    kill $keyring
                    wait
                    """
                let tool = ToolRun(
                    program: "dbus-run-session", arguments: ["--", "sh", "-c", script], environment: environment,
                    of: "the test")
                let session = Task { try await tool.answer(to: [], until: .now + soon) }
                try await eventually { FileManager.default.fileExists(atPath: address.path) }
                var inside = environment
                inside["DBUS_SESSION_BUS_ADDRESS"] = try String(contentsOf: address, encoding: .utf8)
                    .trimmingCharacters(in: .whitespacesAndNewlines)
                var failure: (any Error)?
                do { try await body(SecretServiceKeyProvider(store: "test", environment: inside)) } catch {
                    failure = error
                }
                try FileManager.default.removeItem(at: running)
                _ = try await session.value
                if let failure { throw failure }
            }
            var made: MasterKeys?
            try await desktop("printf pw | gnome-keyring-daemon --unlock") { provider in
                await expectKeyError(.missing) { _ = try await provider.keys(within: soon) }
                let first = try await provider.makeKey(within: soon)
                let second = try await provider.addKey(within: soon)
                #expect(second.previous == [first.current])
                #expect(try await provider.keys(within: soon) == second)
                made = second
            }
            try await desktop("gnome-keyring-daemon") { provider in
                await expectKeyError(.locked) { _ = try await provider.keys(within: soon) }
                await expectKeyError(.locked) { _ = try await provider.makeKey(within: soon) }
            }
            try await desktop("printf pw | gnome-keyring-daemon --unlock") { provider in
                let again = try await provider.keys(within: soon)
                #expect(again == made)
            }
        }
    }
    #endif

    @Test("Keys come from the variables that the program names, and errors name these")
    func variableNames() async throws {
        let (one, two, other) = (MasterKey(), MasterKey(), MasterKey())
        @Sendable func text(_ key: MasterKey) -> String { Data(key.bytes).base64EncodedString() }
        let provider = EnvironmentKeyProvider(variable: "MINE", previousVariable: "OLD") {
            ["MINE": text(one), "OLD": text(two), "LARDER_KEY": text(other), "LARDER_PREVIOUS_KEYS": text(other)]
        }
        #expect(try await provider.keys(within: soon) == MasterKeys(current: one, previous: [two]))
        for name in ["MINE", "OLD"] {
            await expectKeyError(.cannotRotate, containing: name) { _ = try await provider.addKey(within: soon) }
        }
        let unset = EnvironmentKeyProvider(variable: "MINE") { [:] }
        #expect("\(unset)".contains("MINE"))
        await expectKeyError(.missing, containing: "MINE") { _ = try await unset.keys(within: soon) }
    }
}

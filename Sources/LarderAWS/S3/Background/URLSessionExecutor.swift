#if canImport(Darwin)
public import Foundation
public import Larder
import LarderFiles

/// A background `URLSession`, which the system carries on while the app is suspended or was ended. Not compiled here.
///
/// Make one when the app is launched, also where the system launches it in the background, with the same identifier and
/// folder each time. Set `finishedEvents` to what `application(_:handleEventsForBackgroundURLSession:…)` hands over.
public final class URLSessionExecutor: NSObject, BackgroundExecutor, URLSessionDataDelegate, URLSessionDownloadDelegate
{
    private struct State {
        var bodies: [Int: [UInt8]] = [:]
        /// Why files that were received are not in their places.
        var unplaced: [Int: String] = [:]
        var waiting: [UUID: [CheckedContinuation<Void, Never>]] = [:]
        /// How many requests have ended.
        var ends = 0
        var finishedEvents: (@Sendable () -> Void)?
    }

    /// What is noted of a request that has ended.
    private struct Ended: Codable {
        var response: FileResponse?
        var failure: String?
    }

    /// What a task's description says, which the system keeps.
    private struct Job: Codable {
        var id: UUID
        /// Where a download is put, relative to the home folder where it lies there: an app's container moves.
        var file: String?
    }

    private static let longestBody = 64 << 10

    /// Where the ends of requests are noted: the system tells of each once.
    private let folder: URL
    private let state = Locked(State())
    // Safe: it is set once, at the end of the initializer, and not before the delegate is whole.
    private nonisolated(unsafe) var session = URLSession.shared

    /// - Parameters:
    ///   - identifier: Of the session; one store's alone.
    ///   - folder: A folder of the executor's own, which is made.
    public init(identifier: String, folder: URL) throws {
        self.folder = folder
        super.init()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.isDiscretionary = false
        configuration.sessionSendsLaunchEvents = true
        session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    }

    /// Called once the system has told of everything that happened while the app was not running.
    public var finishedEvents: (@Sendable () -> Void)? {
        get { state.withLock { $0.finishedEvents } }
        set { state.withLock { $0.finishedEvents = newValue } }
    }

    /// The exchanges that it has, under way or ended.
    public func known() async throws(ObjectError) -> Set<UUID> {
        let tasks = await session.allTasks.compactMap(Self.id)
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: folder.path) } catch {
            throw Self.unusable(error)
        }
        return Set(tasks).union(names.compactMap(UUID.init(uuidString:)))
    }

    /// Hands an exchange to the system, which carries it out also while the program is suspended.
    public func begin(_ request: FileRequest, as id: UUID) async throws(ObjectError) {
        var made = URLRequest(url: request.url)
        made.httpMethod = request.method
        for (name, value) in request.headers { made.setValue(value, forHTTPHeaderField: name) }
        let isDownload = request.method == "GET"
        let task =
            isDownload ? session.downloadTask(with: made) : session.uploadTask(with: made, fromFile: request.file)
        let job = Job(id: id, file: isDownload ? Self.stored(request.file) : nil)
        do { task.taskDescription = String(decoding: try JSONEncoder().encode(job), as: UTF8.self) } catch {
            throw Self.unusable(error)
        }
        task.resume()
    }

    private static func stored(_ file: URL) -> String {
        let home = NSHomeDirectory() + "/"
        return file.path.hasPrefix(home) ? String(file.path.dropFirst(home.count)) : file.path
    }

    private static func located(_ file: String) -> URL {
        URL(filePath: file.hasPrefix("/") ? file : NSHomeDirectory() + "/" + file)
    }

    /// What came of an exchange; nil while it is under way.
    public func response(to id: UUID) async throws(ObjectError) -> FileResponse? {
        while true {
            let before = state.withLock { $0.ends }
            if let ended = try ended(id) {
                guard let response = ended.response else {
                    throw ObjectError(.interrupted, ended.failure ?? "The system says no response")
                }
                return response
            }
            guard !Task.isCancelled else { throw ObjectError(.cancelled, "The wait was cancelled") }
            guard try await known().contains(id) else { return nil }
            await wait(for: id, past: before)
        }
    }

    /// Ends an exchange, and forgets what came of it.
    public func end(_ id: UUID) async throws(ObjectError) {
        for task in await session.allTasks where Self.id(task) == id { task.cancel() }
        do { try FileManager.default.removeItem(at: file(of: id)) } catch CocoaError.fileNoSuchFile {} catch {
            throw Self.unusable(error)
        }
    }

    // MARK: Ends

    private static func job(_ task: URLSessionTask) -> Job? {
        task.taskDescription.flatMap { try? JSONDecoder().decode(Job.self, from: Data($0.utf8)) }
    }

    private static func id(_ task: URLSessionTask) -> UUID? { job(task)?.id }

    private func file(of id: UUID) -> URL { folder.appending(path: id.uuidString) }

    private func ended(_ id: UUID) throws(ObjectError) -> Ended? {
        do { return try JSONDecoder().decode(Ended.self, from: Data(contentsOf: file(of: id))) } catch CocoaError
            .fileReadNoSuchFile
        { return nil } catch { throw Self.unusable(error) }
    }

    private static func unusable(_ error: any Error) -> ObjectError {
        ObjectError(.notPrepared, "The folder of the background session cannot be used", cause: error)
    }

    /// Waits until another request has ended than had by then, or the task is cancelled.
    private func wait(for id: UUID, past ends: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDue = state.withLock { state in
                    if state.ends != ends { return true }
                    state.waiting[id, default: []].append(continuation)
                    return false
                }
                if isDue { return continuation.resume() }
                if Task.isCancelled { resume(id) }
            }
        } onCancel: {
            resume(id)
        }
    }

    /// Notes an end, and wakes the callers that wait for it.
    private func wake(_ id: UUID) {
        state.withLock { $0.ends += 1 }
        resume(id)
    }

    private func resume(_ id: UUID) {
        for continuation in state.withLock({ $0.waiting.removeValue(forKey: id) }) ?? [] { continuation.resume() }
    }

    // MARK: URLSession

    /// Called by the system with bytes of an answer.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLock { state in
            let room = Self.longestBody - (state.bodies[dataTask.taskIdentifier]?.count ?? 0)
            state.bodies[dataTask.taskIdentifier, default: []] += data.prefix(room)
        }
    }

    /// Called by the system with the file that it has received.
    public func urlSession(
        _ session: URLSession, downloadTask task: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        // The system removes the file when this returns.
        guard let job = Self.job(task), let file = job.file.map(Self.located) else { return }
        guard (task.response as? HTTPURLResponse)?.statusCode == 200 else {
            let handle = try? FileHandle(forReadingFrom: location)
            let body = (try? handle?.read(upToCount: Self.longestBody)) ?? nil
            return state.withLock { $0.bodies[task.taskIdentifier] = body.map(Array.init) ?? [] }
        }
        guard rename(location.path, file.path) != 0 else { return }
        let failure = "The file that was received cannot be put into its place (errno \(errno))"
        state.withLock { $0.unplaced[task.taskIdentifier] = failure }
    }

    /// Called by the system at the end of an exchange.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (body, unplaced) = state.withLock { state in
            (
                state.bodies.removeValue(forKey: task.taskIdentifier) ?? [],
                state.unplaced.removeValue(forKey: task.taskIdentifier)
            )
        }
        guard let id = Self.id(task) else { return }
        defer { wake(id) }
        // Ended by `end`, which forgets it.
        if (error as? URLError)?.code == .cancelled { return }
        var ended = Ended(failure: error.map { "\($0)" } ?? unplaced)
        if ended.failure == nil, let response = task.response as? HTTPURLResponse {
            var headers: [String: String] = [:]
            for case (let name as String, let value as String) in response.allHeaderFields { headers[name] = value }
            ended.response = FileResponse(status: response.statusCode, headers: headers, body: body)
        }
        // Where it cannot be noted, the request is not known any more, and the storage is asked what it has.
        try? JSONEncoder().encode(ended).write(to: file(of: id), options: .atomic)
    }

    /// Called by the system when it has told all that happened while the program was away.
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        state.withLock { $0.finishedEvents }?()
    }
}
#endif

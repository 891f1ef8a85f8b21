import Foundation
import Larder
import LarderHTTP
import RecipeServer

/// Makes a folder and a server, tells the story, and puts both away again whatever came of it.
struct Demonstration: Sendable {
    enum Outcome {
        case held(Claims)
        case failed(any Error)
        case impossible(String)
    }

    let options: DemoOptions

    func run() async -> Outcome {
        let folder: URL
        do { folder = try StoreFolder.make(options) } catch { return .impossible(error.message) }
        let outcome = await run(in: folder)
        if !options.keepsStore {
            try? FileManager.default.removeItem(at: folder)
            // The keys of its credentials are beside it.
            try? FileManager.default.removeItem(at: FileKeyProvider.defaultFile(of: folder))
        }
        return outcome
    }

    private func run(in folder: URL) async -> Outcome {
        var configuration = RecipeServer.Configuration()
        configuration.port = options.port
        configuration.latency = options.latency
        let server: RecipeServer
        do { server = try await RecipeServer.start(configuration) } catch {
            let remedy = options.port == 0 ? "" : "; leave --port out, and it takes a free one"
            return .impossible("the server cannot listen on 127.0.0.1:\(options.port)\(remedy)\n  (\(error))")
        }
        let claims = Claims()
        let outcome: Outcome
        do {
            try await HTTPTransport.withTransport(to: server.url, options: .ofDemonstration) { http in
                let story = try Story(
                    folder: folder, options: options, server: server, http: MeasuredTransport(http),
                    printout: Printout(isQuiet: options.isQuiet), claims: claims)
                try await story.tell()
            }
            outcome = .held(claims)
        } catch { outcome = .failed(error) }
        try? await server.stop()
        return outcome
    }
}

extension HTTPTransport.Options {
    /// The recipe server is told of repeats.
    static var ofDemonstration: Self {
        var options = Self()
        options.idempotency = .header(name: RecipeServer.idempotencyHeader)
        return options
    }
}

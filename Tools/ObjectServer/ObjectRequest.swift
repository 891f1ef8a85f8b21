import Foundation
import NIOHTTP1

/// What a request is about.
struct ObjectRequest {
    enum Action {
        case begin
        case listUploads(prefix: String)
        case putPart(Int, upload: String)
        case listParts(upload: String)
        case complete(upload: String)
        case abort(upload: String)
        case put, get, head
    }

    let head: HTTPRequestHead
    /// `/bucket/key`
    let path: String
    let action: Action

    /// Nil where the server cannot do it.
    init?(_ head: HTTPRequestHead) {
        guard let uri = URLComponents(string: head.uri) else { return nil }
        (self.head, path) = (head, uri.path)
        let items = uri.queryItems ?? []
        func item(_ name: String) -> String? { items.first { $0.name == name }.map { $0.value ?? "" } }
        switch (head.method, item("uploadId")) {
        case (.POST, nil) where item("uploads") != nil: action = .begin
        case (.GET, nil) where item("uploads") != nil: action = .listUploads(prefix: item("prefix") ?? "")
        case (.PUT, let upload?):
            guard let number = item("partNumber").flatMap({ Int($0) }), number > 0 else { return nil }
            action = .putPart(number, upload: upload)
        case (.GET, let upload?): action = .listParts(upload: upload)
        case (.POST, let upload?): action = .complete(upload: upload)
        case (.DELETE, let upload?): action = .abort(upload: upload)
        case (.PUT, nil) where items.isEmpty: action = .put
        case (.GET, nil) where items.isEmpty: action = .get
        case (.HEAD, nil) where items.isEmpty: action = .head
        default: return nil
        }
    }

    /// Whether its body is bytes of an object.
    var carriesBytes: Bool {
        switch action {
        case .putPart, .put: true
        default: false
        }
    }

    /// The bytes of an object that are asked for; nil where there are no such.
    func range(of size: Int) -> (range: Range<Int>, isPart: Bool)? {
        guard let text = head.headers.first(name: "Range") else { return (0..<size, false) }
        guard let match = text.wholeMatch(of: /bytes=([0-9]+)-([0-9]+)/), let first = Int(match.1),
            let last = Int(match.2), first <= last, first < size
        else { return nil }
        return (first..<min(last, size - 1) + 1, true)
    }
}

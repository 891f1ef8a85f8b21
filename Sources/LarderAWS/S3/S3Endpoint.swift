import Foundation
import Larder

/// Where the requests for buckets go.
struct S3Endpoint: Sendable {
    /// A request's place: what its URL and its signature are made of.
    struct Address: Sendable, Hashable {
        let scheme: String
        /// With the port, unless it is the scheme's own.
        let host: String
        /// Encoded.
        let path: String
    }

    private let custom: (scheme: String, host: String, path: String)?
    private let addressing: S3Transport.Options.Addressing
    /// Whether TLS keeps what is sent.
    let isSecure: Bool
    /// Whether it is Amazon's own, where each region has a host.
    var isAmazon: Bool { custom == nil }

    init(_ options: S3Transport.Options) throws(ObjectError) {
        addressing = options.addressing
        guard let url = options.endpoint else {
            (custom, isSecure) = (nil, true)
            return
        }
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let name = parts.hostInBrackets, !name.isEmpty, parts.query == nil, parts.user == nil
        else {
            throw ObjectError(
                .unusableRequest,
                "The endpoint of the storage is not a URL of http or https with a host, without a query, a user or a "
                    + "password.")
        }
        var host = name.lowercased()
        if let port = parts.port, port != (scheme == "https" ? 443 : 80) { host += ":\(port)" }
        var path = parts.percentEncodedPath
        while path.hasSuffix("/") { path.removeLast() }
        (custom, isSecure) = ((scheme, host, path), scheme == "https")
    }

    /// The address of a key; of the bucket itself where there is none.
    func address(bucket: String, key: String?, region: String) throws(ObjectError) -> Address {
        guard (1...255).contains(bucket.utf8.count), bucket.utf8.allSatisfy(Self.mayNameBucket), bucket != ".",
            bucket != ".."
        else {
            throw ObjectError(.unusableRequest, "\"\(bucket)\" cannot be the name of a bucket.")
        }
        if let key {
            guard !key.isEmpty else { throw ObjectError(.unusableRequest, "The key of an object cannot be empty.") }
            guard key.utf8.count <= 1_024 else {
                throw ObjectError(.unusableRequest, "The key has \(key.utf8.count) bytes; 1,024 are allowed.")
            }
        }
        let base = try base(region: region)
        let keyPath = "/" + URIEncoding.path(key ?? "")
        guard isNamedByHost(bucket, host: base.host) else {
            return Address(
                scheme: base.scheme, host: base.host,
                path: base.path + "/" + URIEncoding.path(bucket) + (key == nil ? "" : keyPath))
        }
        return Address(scheme: base.scheme, host: "\(bucket).\(base.host)", path: base.path + keyPath)
    }

    private func base(region: String) throws(ObjectError) -> (scheme: String, host: String, path: String) {
        if let custom { return custom }
        guard Self.isRegion(region) else {
            throw ObjectError(.unusableRequest, "\"\(region)\" cannot be the name of a region.")
        }
        return ("https", "s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")", "")
    }

    private func isNamedByHost(_ bucket: String, host: String) -> Bool {
        switch addressing {
        case .path:
            return false
        case .virtualHost:
            return true
        case .automatic:
            let name = host.split(separator: ":").first.map(String.init) ?? host
            // The last label of a host's name is no number; an IPv6 address begins with a bracket.
            let isAddress = host.hasPrefix("[") || name.split(separator: ".").last.map { Int($0) != nil } ?? true
            guard !isAddress, name != "localhost", (3...63).contains(bucket.utf8.count) else { return false }
            let isHostName =
                bucket.utf8.allSatisfy { $0 != UInt8(ascii: "_") && !(0x41...0x5A).contains($0) }
                && !bucket.contains("..") && !bucket.hasPrefix(".") && !bucket.hasSuffix(".")
                && !bucket.hasPrefix("-") && !bucket.hasSuffix("-")
            return isHostName && !(isSecure && bucket.contains("."))
        }
    }

    /// Whether a text can name a region: a label of a host's name, since Amazon's regions are some.
    static func isRegion(_ text: String) -> Bool {
        let hyphen = UInt8(ascii: "-")
        return (1...63).contains(text.utf8.count) && text.utf8.first != hyphen && text.utf8.last != hyphen
            && text.utf8.allSatisfy { byte in
                mayNameBucket(byte) && byte != UInt8(ascii: ".") && byte != UInt8(ascii: "_")
            }
    }

    /// Names made long ago have capitals and underscores too.
    private static func mayNameBucket(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default:
            false
        }
    }
}

extension URLComponents {
    /// The host as it goes into a URL and into the header: IPv6 addresses in brackets.
    fileprivate var hostInBrackets: String? {
        guard let host = encodedHost else { return nil }
        return host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    }
}

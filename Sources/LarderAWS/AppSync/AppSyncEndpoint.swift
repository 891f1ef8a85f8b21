import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What an API's URL says of it.
enum AppSyncEndpoint {
    /// The region out of a host such as `ID.appsync-api.eu-west-1.amazonaws.com`, also in China
    /// (`….amazonaws.com.cn`); nil for a custom domain, which does not say it.
    static func region(of url: URL) -> String? {
        guard let labels = url.host()?.lowercased().split(separator: "."), labels.count >= 5,
            labels[1] == "appsync-api",
            labels[3...] == ["amazonaws", "com"] || labels[3...] == ["amazonaws", "com", "cn"]
        else { return nil }
        return String(labels[2])
    }

    /// Where an API's subscriptions are: a host of their own, or under `/realtime` at a custom domain.
    static func realTime(of url: URL) -> URL {
        guard region(of: url) != nil, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            return url.appending(path: "realtime")
        }
        parts.host = parts.host?.lowercased().replacing(".appsync-api.", with: ".appsync-realtime-api.")
        return parts.url ?? url
    }
}

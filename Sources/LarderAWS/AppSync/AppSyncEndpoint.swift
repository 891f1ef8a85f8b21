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
}

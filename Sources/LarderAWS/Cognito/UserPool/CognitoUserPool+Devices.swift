import Crypto
public import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A device that a pool remembers: a sign-in on it proves the device, and the pool may ask for no second factor.
///
/// It is of one user of one pool, and outlives sessions. It has a secret: a program keeps it where it keeps secrets, and
/// gives it to the next sign-in of the user.
public struct RememberedDevice: Sendable, Hashable, Codable {
    /// The pool's name for it.
    public let key: String
    let group: String
    let password: String
}

extension RememberedDevice: CustomStringConvertible, CustomReflectable {
    /// Nothing secret.
    public var description: String { "device \(key)" }
    /// Has nothing secret.
    public var customMirror: Mirror { Mirror(self, children: ["key": key]) }
}

extension CognitoUserPool {
    /// Has the pool remember the device on which a user has just signed in.
    ///
    /// - Parameters:
    ///   - tokens: The tokens of the user who signed in on the device.
    ///   - name: What people call the device.
    ///   - time: How long the call may take.
    /// - Returns: What the next sign-in on it is given; nil where the pool has named no new device in the sign-in.
    public func rememberDevice(
        of tokens: Credentials.UserPoolTokens, named name: String? = nil, within time: Duration? = nil
    ) async throws(CognitoError) -> RememberedDevice? {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        guard let key = tokens.deviceKey, let group = newDevices.withLock({ $0[key] }) else { return nil }
        let password = Data(options.random(40)).base64EncodedString()
        let (salt, verifier) = SecureRemotePassword.verifier(
            group: group, device: key, password: password, salt: options.random(16))
        var members: [String: CognitoValue] = [
            "AccessToken": .text(tokens.accessToken), "DeviceKey": .text(key),
            "DeviceSecretVerifierConfig": .texts([
                "PasswordVerifier": verifier.base64EncodedString(), "Salt": salt.base64EncodedString(),
            ]),
        ]
        if let name { members["DeviceName"] = .text(name) }
        let answer = try await service.call("ConfirmDevice", members, deadline: deadline)
        if answer.UserConfirmationNecessary == true {
            _ = try await service.call(
                "UpdateDeviceStatus",
                [
                    "AccessToken": .text(tokens.accessToken), "DeviceKey": .text(key),
                    "DeviceRememberedStatus": "remembered",
                ], deadline: deadline)
        }
        newDevices.withLock { _ = $0.removeValue(forKey: key) }
        return RememberedDevice(key: key, group: group, password: password)
    }

    /// Has the pool forget a device.
    public func forgetDevice(
        _ device: RememberedDevice, of tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call(
            "ForgetDevice", ["AccessToken": .text(tokens.accessToken), "DeviceKey": .text(device.key)],
            deadline: deadline)
    }
}

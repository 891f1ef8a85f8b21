import Foundation

/// Whether a command succeeds; what it says is not heard.
package func succeeds(_ program: String, _ arguments: String...) -> Bool {
    let child = Process()
    child.executableURL = URL(filePath: "/usr/bin/env")
    child.arguments = [program] + arguments
    child.standardOutput = FileHandle.nullDevice
    child.standardError = FileHandle.nullDevice
    guard (try? child.start()) != nil else { return false }
    child.waitUntilExit()
    return child.terminationStatus == 0
}

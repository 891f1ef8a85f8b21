import Foundation

/// Ends this process when its standard input ends: with the program that started it, in whatever way that ends.
package func endWithStandardInput() {
    let watch = Thread {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 0 || (count < 0 && errno != EINTR) { _exit(3) }
        }
    }
    watch.start()
}

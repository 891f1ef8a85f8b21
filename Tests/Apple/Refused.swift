// Calls that Apple's systems do not have, or not yet. The compiler must refuse each of them with just these errors: if
// it accepts one, the check checks nothing.
import Darwin

func spanOfAnArray(_ bytes: [UInt8]) -> Int {  // expected-note {{add '@available' attribute}}
    bytes.span.count  // expected-error {{'span' is only available in}} expected-note {{add 'if #available'}}
}

func timeOfChange(_ status: stat) -> Int {
    Int(status.st_mtim.tv_sec)  // expected-error {{value of type 'stat' has no member 'st_mtim'}}
}

func linuxAlone(_ descriptor: Int32, _ path: String) {
    _ = fdatasync(descriptor)  // expected-error {{cannot find 'fdatasync' in scope}}
    _ = renameat2(descriptor, path, descriptor, path, 1)  // expected-error {{cannot find 'renameat2' in scope}}
    _ = posix_fallocate(descriptor, 0, 1)  // expected-error {{cannot find 'posix_fallocate' in scope}}
    _ = O_TMPFILE  // expected-error {{cannot find 'O_TMPFILE' in scope}}
    _ = sync_file_range(descriptor, 0, 0, 0)  // expected-error {{cannot find 'sync_file_range' in scope}}
}

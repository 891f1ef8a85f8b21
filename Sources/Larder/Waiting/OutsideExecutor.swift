import Dispatch

/// Runs what may block its thread: a key store that waits for a person, a program that hangs, a commit that waits for
/// the disk.
///
/// Swift's own threads are as many as there are processors; one that never came back would be missing everywhere.
final class OutsideExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "larder.outside", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

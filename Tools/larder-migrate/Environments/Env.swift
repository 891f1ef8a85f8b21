import ArgumentParser

struct Env: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows and changes the environments that the store knows.",
        discussion: """
            An environment is what locates a backend. The store has a partition for each environment and user: a \
            cache, mutations, a session. One of them is the current one.
            """,
        subcommands: [
            EnvList.self, EnvCurrent.self, EnvShow.self, EnvAdd.self, EnvRemove.self, EnvUse.self, EnvNone.self,
            EnvForget.self,
        ])
}

import ArgumentParser
import LarderCommandLine

struct LarderTool: ParsableCommand {
    static let tool = Output.Tool(name: "larder", version: 1)

    static let configuration = CommandConfiguration(
        commandName: "larder",
        abstract: "Looks into the store of a GraphQL program, feeds it and keeps it in order.",
        discussion: """
            A store is a folder in which a program keeps what a GraphQL server has told it, as records: one for each \
            object, found by its cache key, such as Movie:12345. Every command takes the folder by --store, or from \
            the environment variable LARDER_STORE.

              larder ingest --store S --schema schema.graphqls --operation latest.graphql --response answer.json
              larder query  --store S --schema schema.graphqls --operation latest.graphql
              larder ls     --store S --type Movie --limit 10
              larder get    --store S Movie:12345
              larder watch  --store S Movie:12345
              larder enqueue --store S --operation rate.graphql --variables rating.json
              larder run    --store S --endpoint https://api.example/graphql --until-idle

            info, ls, get, query, watch, check, watchers, changes, env, credentials list, session, mutations list and show, \
            transfers list, show and watch only read: they change no file but the locks, and make none but SQLite's empty \
            log and its index. The others write, and say what they wrote.

            \(WritePermission.rule)

            Data goes to standard output and everything else to standard error. With --json, a command prints one JSON \
            object (watch, subscribe, transfers watch: one a line) of a versioned shape, and a failure is a JSON \
            object on standard error. Every failure comes with a hint. Colours are for terminals, and not with NO_COLOR.

            Exit status: 0 done, 1 failed, 2 the arguments or the files they name cannot be used, 3 the cache does not \
            know it, 4 refused, 5 damaged.
            """,
        version: Program.version,
        subcommands: [
            Info.self, Ls.self, Get.self, Query.self, Watch.self, Check.self, Mutations.self, Transfers.self,
            Watchers.self,
            Changes.self, Env.self, CredentialsVerbs.self, SessionVerb.self, SignInVerb.self, SignUpVerb.self,
            SignOutVerb.self,
            Ingest.self, Fetch.self, Send.self, Enqueue.self, Run.self, Subscribe.self, Sync.self, PagesVerb.self,
            PinVerb.self,
            UnpinVerb.self, Rm.self,
            GarbageVerb.self, Compact.self,
            Clear.self,
        ])
}

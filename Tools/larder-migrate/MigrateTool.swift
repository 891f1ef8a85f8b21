import ArgumentParser
import LarderCommandLine

struct MigrateTool: ParsableCommand {
    static let tool = Output.Tool(name: "larder-migrate", version: 1)

    static let configuration = CommandConfiguration(
        commandName: "larder-migrate",
        abstract: "Changes the schema of a store, its formats and its environment.",
        discussion: """
            A store is a folder in which a program keeps what a GraphQL server has told it and what it has to tell the \
            server. Every command takes the folder by --store, or from the environment variable LARDER_STORE.

              larder-migrate status   --store S
              larder-migrate plan     --store S
              larder-migrate up       --store S
              larder-migrate backup   --store S --to backups
              larder-migrate backup list --store S
              larder-migrate restore  --store S backups/2026-11-21T220000Z
              larder-migrate env use staging --park --store S
              larder-migrate import --from apollo cache.sqlite --schema schema.graphqls --store S

            status, plan and validate only read. What changes data makes a backup first, beside the store, and takes \
            the migration lock: whoever waits for it longer than --timeout is told who has it. Programs that have the \
            store open go on. Nothing is ever asked: what is dangerous wants to be said in the arguments.

            \(WritePermission.rule)

            Data goes to standard output and everything else to standard error. With --json, a command prints one JSON \
            object of a versioned shape, and a failure is a JSON object on standard error.

            Exit status: 0 done, 1 failed, 2 the arguments cannot be used, 3 something is yet to be done, or is not \
            known, 4 refused, 5 damaged.
            """,
        version: Program.version,
        subcommands: [
            Status.self, Plan.self, Up.self, Validate.self, Repair.self, Baseline.self, Backup.self, Restore.self,
            Import.self, Env.self,
        ])
}

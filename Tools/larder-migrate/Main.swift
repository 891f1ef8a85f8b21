import LarderCommandLine

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@main
enum Main {
    static func main() async {
        StandardFiles.prepare()
        exit(
            await Program.run(
                MigrateTool.self, as: MigrateTool.tool, Array(CommandLine.arguments.dropFirst())
            ).rawValue)
    }
}

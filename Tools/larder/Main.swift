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
        exit(await Program.run(LarderTool.self, as: LarderTool.tool, Array(CommandLine.arguments.dropFirst())).rawValue)
    }
}

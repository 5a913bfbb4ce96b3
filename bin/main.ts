#!/usr/bin/env node
import { readCommandLine, UsageError } from './command-line.js'
import { commands } from './commands.js'
import { helpOf } from './help.js'
import { openTarget, placesOf } from './target.js'
import { withoutPasswords } from './without-passwords.js'

/** 0: done. 1: it was looked at, and is not as wanted. 2: the command line is wrong. 3: the store failed, or cannot be reached. */
async function main(): Promise<number> {
  const line = readCommandLine(process.argv.slice(2))
  if (line.help) {
    console.log(helpOf(line.command))
    return 0
  }
  const command = commands[line.command as keyof typeof commands]
  if (command.needs === 'nothing') return command.run(line)
  const target = await openTarget(line, command.needs)
  try {
    return await command.run(line, target)
  } finally {
    await target.close()
  }
}

/** Whoever reads only the first lines, as `head` does, has read enough. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 3))

main().then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    const isUsage = isMistaken(error)
    console.error(`once-per-key: ${told(error)}${isUsage ? '\nTry: once-per-key --help' : ''}`)
    process.exitCode = isUsage ? 2 : 3
  },
)

/** Also a name or a value that the library refuses: nothing was sent to the store. */
function isMistaken(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return error instanceof UsageError || code === 'options_invalid' || code === 'arguments_invalid'
}

function told(error: unknown): string {
  const given = [...process.argv.slice(2), ...Object.values(placesOf(process.env))]
  return withoutPasswords(
    String((error as Error).message),
    given.filter((text) => text !== undefined),
  )
}

#!/usr/bin/env node
import { createRequire } from 'node:module'
import { readCommandLine, UsageError } from './command-line.js'
import { commands } from './commands.js'
import { buildHelp } from './help.js'
import { CLOSE_MS, closeWithinLimit, describeError } from './limits.js'
import { stripControlCharacters } from './printed.js'
import { describeTarget, openTarget, readEnvironment } from './target.js'
import { redactPasswords } from './without-passwords.js'

/** 0: done. 1: it was looked at, and is not as wanted. 2: the command line is wrong. 3: the store failed, or cannot be reached. */
async function main(): Promise<number> {
  const line = readCommandLine(process.argv.slice(2))
  if (line.version) {
    console.log(readPackageVersion())
    return 0
  }
  if (line.help) {
    console.log(buildHelp(line.command))
    return 0
  }
  const command = commands[line.command as keyof typeof commands]
  if (command.needs === 'nothing') return command.run(line)
  const target = await openTarget(line, command.needs)
  try {
    return await command.run(line, target)
  } catch (error) {
    // What a driver throws does not say whose it is.
    throw isOurs(error)
      ? error
      : new Error(`${describeTarget(target)} failed: ${describeError(error)}`, { cause: error })
  } finally {
    await closeWithinLimit(() => target.close())
  }
}

function readPackageVersion(): string {
  return createRequire(import.meta.url)('once-per-key/package.json').version
}

/** Whoever reads only the first lines, as `head` does, has read enough: what was to be done is done all the same. */
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(3)
  })
}

/** Until it has said how it ended, it counts as failed: a process also ends because nothing is left to wait for. */
process.exitCode = 3
process.once('beforeExit', onEndedWithoutResult)

/** Of a client of a --store module, which nobody waits for: Node would print it with a URL's password, and end with code 1. */
process.on('uncaughtException', (error) => {
  reportFailure(error)
  process.exit()
})

main()
  .then((code) => {
    process.exitCode = code
  }, reportFailure)
  .finally(onMainSettled)

function onEndedWithoutResult(): void {
  reportFailure(
    new Error('It ended without a result: what it waited for never comes. With --store, see what the module awaits.'),
  )
}

function reportFailure(error: unknown): void {
  const isUsage = isMistaken(error)
  const lines = describeRedactedError(error).split('\n').map(stripControlCharacters) // A server chooses the words of its errors.
  console.error(`once-per-key: ${lines.join('\n')}${isUsage ? '\nTry: once-per-key --help' : ''}`)
  process.exitCode = isUsage ? 2 : 3
}

function onMainSettled(): void {
  process.off('beforeExit', onEndedWithoutResult)
  // By then only what nobody closes is left: a socket of a driver, or the client of a module that has no store.
  setTimeout(() => process.exit(), CLOSE_MS).unref()
}

/** Also a name or a value that the library refuses: nothing was sent to the store. */
function isMistaken(error: unknown): boolean {
  return error instanceof UsageError || ['options_invalid', 'arguments_invalid'].includes(getErrorCode(error))
}

/** The library's errors, and the command's, say what happened where. */
function isOurs(error: unknown): boolean {
  return isMistaken(error) || ['command_missing', 'store_failed'].includes(getErrorCode(error))
}

function getErrorCode(error: unknown): string {
  return String((error as { readonly code?: unknown } | null)?.code)
}

function describeRedactedError(error: unknown): string {
  const given = [...process.argv.slice(2), ...Object.values(readEnvironment(process.env))]
  return redactPasswords(
    describeError(error),
    given.filter((text) => text !== undefined),
  )
}

import { parseArgs } from 'node:util'
import type { RecordName } from 'once-per-key/core'
import { singleTenant } from 'once-per-key/http'
import { isUrlLike } from './without-passwords.js'

/** The command line is not as the help says. Nothing was opened. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const COMMAND_NAMES = [
  'unknown',
  'list',
  'inspect',
  'resolve',
  'forget',
  'stats',
  'doctor',
  'schema',
  'migrate',
  'seal',
] as const
export type CommandName = (typeof COMMAND_NAMES)[number]

const OPTIONS = {
  redis: { type: 'string' },
  postgres: { type: 'string' },
  mysql: { type: 'string' },
  sqlite: { type: 'string' },
  store: { type: 'string' },
  prefix: { type: 'string' },
  schema: { type: 'string' },
  for: { type: 'string' },
  namespace: { type: 'string' },
  path: { type: 'string' },
  scope: { type: 'string' },
  key: { type: 'string' },
  remove: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  attempt: { type: 'string' },
  failed: { type: 'boolean' },
  completed: { type: 'boolean' },
  rerun: { type: 'boolean' },
  status: { type: 'string' },
  body: { type: 'string' },
  'content-type': { type: 'string' },
  'show-body': { type: 'boolean' },
  derive: { type: 'string' },
  limit: { type: 'string' },
  ids: { type: 'boolean' },
  json: { type: 'boolean' },
  yes: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

type OptionName = keyof typeof OPTIONS

const OF_ALL: readonly OptionName[] = ['json', 'help']
const OF_STORES: readonly OptionName[] = ['redis', 'postgres', 'mysql', 'sqlite', 'store', 'prefix', 'schema']

/** What each command takes besides. */
const TAKES: Readonly<Record<CommandName, readonly OptionName[]>> = {
  unknown: [...OF_STORES, 'limit'],
  list: [...OF_STORES, 'namespace', 'scope', 'limit'],
  inspect: [...OF_STORES, 'namespace', 'path', 'show-body', 'derive'],
  resolve: [
    ...OF_STORES,
    'namespace',
    'path',
    'attempt',
    'failed',
    'completed',
    'rerun',
    'status',
    'body',
    'content-type',
    'yes',
  ],
  forget: [...OF_STORES, 'namespace', 'path', 'scope', 'key', 'remove', 'dry-run', 'yes'],
  stats: OF_STORES,
  doctor: OF_STORES,
  schema: ['for', 'prefix', 'schema'],
  migrate: OF_STORES,
  seal: ['ids'],
}

export type Options = ReturnType<typeof parseArguments>['values']

export interface CommandLine {
  /** `undefined`: help alone was asked for. */
  readonly command: CommandName | undefined
  /** What stands behind the command: scope and key. */
  readonly rest: readonly string[]
  readonly options: Options
  readonly help: boolean
  /** Only the version was asked for. */
  readonly version: boolean
}

/** @throws UsageError */
export function readCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals, tokens } = parseArguments(args)
  assertGivenOnce(tokens)
  const [command, ...rest] = positionals
  if (command === undefined || command === 'help') {
    const version = command === undefined && values.version === true
    return { command: undefined, rest, options: values, help: !version, version }
  }
  if (!isCommand(command)) throw new UsageError(buildNoCommandMessage(command))
  assertOptionsAllowed(command, values)
  assertNoOtherWords(command, rest)
  assertPlaces(values)
  if (values.derive === '') throw new UsageError('--derive takes the label that the handler gave to deriveKey.')
  return { command, rest, options: values, help: values.help === true, version: false }
}

/** Another command's option is not ignored: whoever adds --dry-run expects that nothing changes. */
function assertOptionsAllowed(command: CommandName, options: Options): void {
  const taken: readonly string[] = [...OF_ALL, ...TAKES[command]]
  const other = Object.keys(options).find((name) => !taken.includes(name))
  if (other !== undefined) throw new UsageError(`${command} has no --${other}: see once-per-key ${command} --help.`)
}

/** As `unknown acme`: it would list what is everybody's. Not repeated, as below. */
function assertNoOtherWords(command: CommandName, rest: readonly string[]): void {
  if (rest.length === 0 || NAME_RECORDS.includes(command)) return
  throw new UsageError(`${command} takes options alone, and no other word: see once-per-key ${command} --help.`)
}

/** They check their words themselves. */
const NAME_RECORDS: readonly CommandName[] = ['inspect', 'resolve', 'forget']

/** What is no word is not repeated: it may be a URL, with a password. */
function buildNoCommandMessage(word: string): string {
  return /^[\w-]+$/.test(word)
    ? `There is no command "${word}". There are ${COMMAND_NAMES.join(', ')}.`
    : 'The first word is no command: give one, and then where the records are, such as --redis URL.'
}

/** Drivers take an empty URL for the server of this machine. */
function assertPlaces(options: Options): void {
  for (const name of ['redis', 'postgres', 'mysql', 'sqlite', 'store'] as const)
    assertNotEmpty(`--${name}`, options[name])
  for (const name of ['sqlite', 'store'] as const) {
    if (!isUrlLike(options[name] ?? '')) continue
    throw new UsageError(
      `--${name} takes the path of a file, and was given a URL: a server is --redis, --postgres or --mysql.`,
    )
  }
}

/** @throws UsageError */
export function assertNotEmpty(name: string, place: string | undefined): void {
  if (place?.trim() === '') throw new UsageError(`${name} is empty: is a variable of the shell not set?`)
}

function parseArguments(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, tokens: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** The last one alone would count: of two scopes, the first one's answers would stay, as if they had been erased. */
function assertGivenOnce(tokens: ReturnType<typeof parseArguments>['tokens']): void {
  const given = tokens.flatMap((token) => (token.kind === 'option' && token.value !== undefined ? [token.name] : []))
  const twice = given.find((name, i) => given.indexOf(name) < i)
  if (twice !== undefined) throw new UsageError(`--${twice} is given twice: which one is meant?`)
}

function isCommand(word: string): word is CommandName {
  return (COMMAND_NAMES as readonly string[]).includes(word)
}

/** The record that is meant: scope and key, as events name it. */
export function parseRecordName({ rest, options }: CommandLine): RecordName {
  const [scope, key, ...more] = rest
  if (scope === undefined || key === undefined || more.length > 0) {
    throw new UsageError(
      'A record is named by its scope and its key: once-per-key inspect acme order-1001 … ' +
        `With singleTenant the scope is ${singleTenant()}.`,
    )
  }
  const { namespace, path } = options
  assertNameParts({ scope, key, namespace, path })
  return { scope, key, ...(namespace !== undefined && { namespace }), ...(path !== undefined && { path }) }
}

/** An empty name is nobody's: to say that there is no record would mislead. @throws UsageError */
export function assertNameParts(parts: Readonly<Record<string, string | undefined>>): void {
  const empty = Object.keys(parts).find((part) => parts[part] === '')
  if (empty !== undefined) throw new UsageError(`The ${empty} is empty: is a variable of the shell not set?`)
}

/** An integer of at least 1; `undefined`: it was not given. */
export function parseCount(options: Options, name: 'attempt' | 'limit' | 'status'): number | undefined {
  const text = options[name]
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--${name} is an integer of at least 1.`)
  return Number(text)
}

import { expect, test } from 'vitest'
import { COMMAND_NAMES, parseRecordName, readCommandLine, UsageError } from '../../bin/command-line.js'
import { buildHelp } from '../../bin/help.js'

test('an option of another command is refused: nothing is settled where --dry-run was said', () => {
  const settles = ['resolve', 'acme', 'order-1', '--attempt', '1', '--failed', '--yes']
  expect(readCommandLine(settles).options).toMatchObject({ failed: true })
  const dry = () => readCommandLine([...settles, '--dry-run'])
  expect(dry).toThrow(UsageError)
  expect(dry).toThrow('resolve has no --dry-run: see once-per-key resolve --help.')
  expect(() => readCommandLine(['forget', '--scope', 'acme', '--limit', '5'])).toThrow('forget has no --limit')
})

test('an option with a value is refused where it is given twice: the first one would be ignored', () => {
  const forgets = () => readCommandLine(['forget', '--scope', 'acme', '--scope=globex', '--yes'])
  expect(forgets).toThrow(UsageError)
  expect(forgets).toThrow('--scope is given twice')
  expect(readCommandLine(['forget', '--scope', 'acme', '--yes', '--yes']).options.yes).toBe(true)
})

test.each(['redis', 'postgres', 'sqlite', 'store'])(
  'an empty --%s is refused: it may be a variable that is not set',
  (name) => {
    const forgets = () => readCommandLine(['forget', '--scope', 'acme', '--yes', `--${name}`, ''])
    expect(forgets).toThrow(UsageError)
    expect(forgets).toThrow(`--${name} is empty`)
  },
)

test.each([
  ['scope', ['', 'order-1']],
  ['key', ['acme', '']],
  ['namespace', ['acme', 'order-1', '--namespace', '']],
  ['path', ['acme', 'order-1', '--path', '']],
])('an empty %s is refused, and never told to have no record', (part, args) => {
  expect(() => parseRecordName(readCommandLine(['inspect', ...args]))).toThrow(`The ${part} is empty`)
})

test.each(['unknown', 'stats', 'doctor', 'schema', 'migrate', 'seal'])(
  '%s refuses a word that it does not know, and does not repeat it',
  (name) => {
    expect(() => readCommandLine([name, 'acme'])).toThrow(`${name} takes options alone`)
    expect(() => readCommandLine([name, 'redis://me:secret@host'])).not.toThrow('secret')
  },
)

test.each([
  ['schema', 'mysql'],
  ['schema', 'sqlite'],
  ['seal', 'redis'],
  ['seal', 'prefix'],
])('%s, which opens no store, refuses --%s: it would print what is another store’s', (name, option) => {
  expect(() => readCommandLine([name, `--${option}`, 'somewhere'])).toThrow(`${name} has no --${option}`)
})

test.each(COMMAND_NAMES)('%s takes each option that its help names', (name) => {
  for (const [option] of buildHelp(name).matchAll(/--[a-z-]+/g)) {
    const isTaken = (args: string[]) => {
      try {
        return readCommandLine(args).command === name
      } catch {
        return false
      }
    }
    expect(isTaken([name, option, 'value']) || isTaken([name, option]), option).toBe(true)
  }
})

import { expect, test } from 'vitest'
import { COMMAND_NAMES, readCommandLine, UsageError } from '../../bin/command-line.js'
import { helpOf } from '../../bin/help.js'

test('an option of another command is refused: nothing is settled where --dry-run was said', () => {
  const settles = ['resolve', 'acme', 'order-1', '--attempt', '1', '--failed', '--yes']
  expect(readCommandLine(settles).options).toMatchObject({ failed: true })
  const dry = () => readCommandLine([...settles, '--dry-run'])
  expect(dry).toThrow(UsageError)
  expect(dry).toThrow('resolve has no --dry-run: see once-per-key resolve --help.')
  expect(() => readCommandLine(['forget', '--scope', 'acme', '--limit', '5'])).toThrow('forget has no --limit')
})

test.each(['redis', 'postgres', 'sqlite', 'store'])(
  'an empty --%s is refused: it may be a variable that is not set',
  (name) => {
    const forgets = () => readCommandLine(['forget', '--scope', 'acme', '--yes', `--${name}`, ''])
    expect(forgets).toThrow(UsageError)
    expect(forgets).toThrow(`--${name} is empty`)
  },
)

test.each(COMMAND_NAMES)('%s takes each option that its help names', (name) => {
  for (const [option] of helpOf(name).matchAll(/--[a-z-]+/g)) {
    expect(() => readCommandLine([name, option, 'value']), option).not.toThrow()
  }
})

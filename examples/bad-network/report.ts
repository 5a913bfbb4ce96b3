import { faultNames } from './faults.js'
import type { Paint } from './paint.js'
import type { Seen } from './records.js'
import { isAsPromised, type Verdict } from './verdict.js'

const WORDS_WIDTH = 50
const COUNT_WIDTH = 7

/** The verdict, for somebody who has not seen this program before. */
export function reportOf(verdict: Verdict, seen: Seen, isProtected: boolean, paint: Paint): string {
  const replies = [...seen.replies].sort(([one], [other]) => one.localeCompare(other))
  const title = (words: string) => ['', paint('bold', words)]
  const judged = (words: string, count: number) =>
    `${row(words, count)}  ${count === 0 ? paint('green', '✓') : paint('red', '✗')}`
  return [
    ...title('What went wrong on the way'),
    ...verdict.faults.map(({ fault, times }) => row(faultNames[fault], times)),
    ...title('What the clients were told'),
    ...replies.map(([words, times]) => row(words, times)),
    row('requests sent', seen.requests),
    ...title("What the service's books say, and the clients compared"),
    row('operations wanted', verdict.wanted),
    row('operations run', verdict.run),
    judged('payments made twice or more', verdict.duplicates),
    judged('payments never finished', verdict.unfinished),
    judged('answers that differ', verdict.differing),
    judged('answers leaked to another merchant or payment', verdict.leaks),
    judged('other amounts accepted under a used key', verdict.changesAccepted),
    '',
    ...(isProtected ? conclusion(verdict, paint) : demonstration(verdict, paint)),
  ].join('\n')
}

function conclusion(verdict: Verdict, paint: Paint): string[] {
  const { wanted, duplicates, examples, untried } = verdict
  if (isAsPromised(verdict)) return [paint(['green', 'bold'], `All ${wanted} payments were made exactly once.`)]
  return [
    paint(['red', 'bold'], 'Not as promised.'),
    ...(duplicates > 0
      ? [twiceOrMore(verdict), `The first keys, and how often they ran: ${examples.join(', ')}.`]
      : []),
    ...untried.map((fault) => `The run shows too little, since it met none of these: ${faultNames[fault]}.`),
  ]
}

function demonstration(verdict: Verdict, paint: Paint): string[] {
  return [
    paint(['yellow', 'bold'], `Without the key, ${twiceOrMore(verdict)}`),
    'A real network fails less often than this one, and for longer.',
  ]
}

function twiceOrMore({ duplicates, wanted, tooMuch }: Verdict): string {
  const euros = (tooMuch / 100).toLocaleString('en-GB', { minimumFractionDigits: 2 })
  return `${duplicates} of ${wanted} payments were made twice or more: ${euros} EUR too much.`
}

function row(words: string, count: number): string {
  return `  ${words.padEnd(WORDS_WIDTH)}${count.toLocaleString('en-GB').padStart(COUNT_WIDTH)}`
}

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'

/** What every Linux tells programs, whatever its kernel counts. */
const TICKS_PER_SECOND = 100

/** How many seconds of the processor another process has had so far; `0`: it has ended. */
export async function processorSecondsOf(pid: number): Promise<number> {
  if (process.platform === 'linux') return ticksIn(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))
  return new Promise((resolve) => {
    execFile('ps', ['-o', 'time=', '-p', `${pid}`], (error, said) => resolve(error === null ? secondsIn(said) : 0))
  })
}

/** proc(5): behind the name in parentheses, `utime` and `stime` are the twelfth and the thirteenth. */
function ticksIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS_PER_SECOND
}

/** POSIX: `[dd-]hh:mm:ss`; macOS: `mmm:ss.ss`. */
function secondsIn(time: string): number {
  const [clock = '', days = '0'] = time.trim().split('-').reverse()
  return clock.split(':').reduce((sum, part) => 60 * sum + Number(part), 0) + 86_400 * Number(days)
}

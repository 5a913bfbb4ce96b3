import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Findings, Violation } from '../layer.js'
import { ownPulse } from '../limits/pulse.js'

/** The bundle of `service.main.ts`, beside the layer's own. */
const PROGRAM = fileURLToPath(new URL('./soak-service.js', import.meta.url))
const SCRIPT = fileURLToPath(new URL('./soak-script.js', import.meta.url))
/** Far below what the pending work of the service would keep it alive for. */
const WORK_BEATS = 1_200
const EXIT_BEATS = 1_200

/** A script whose callers wait ends when each was answered, and not before. */
export async function waits(findings: Findings): Promise<void> {
  let kill = () => {}
  const ended = new Promise<{ code: unknown; said: string }>((resolve) => {
    const child = execFile(process.execPath, [SCRIPT], (error, said) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), said: said.trim() }),
    )
    kill = () => void child.kill('SIGKILL')
  })
  await ownPulse.within(WORK_BEATS, ended).catch(kill)
  const { code, said } = await ended
  findings.expect('L2', said === ANSWERS, () => `a script whose callers wait ended with ${code}, and said: ${said}`)
  findings.expect('L3', code === 0, () => `a script whose callers were answered ended with ${code}`)
}

const ANSWERS = JSON.stringify({
  claimed: 'paid',
  failed: 'declined',
  inspected: 'failed',
  resolved: true,
  waitedHere: 'paid',
  waitedElsewhere: 'paid',
  stored: 'completed',
})

/** A service in a process of its own works, closes, and must end by itself. */
export async function exits(findings: Findings): Promise<void> {
  const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  try {
    const [told] = await ownPulse.within(WORK_BEATS, Promise.race([once(child, 'message'), exited.then(() => [null])]))
    const violations = (told as { violations: Violation[] } | null)?.violations
    findings.expect('L2', violations?.length === 0, () => `the service that was to exit: ${JSON.stringify(violations)}`)
    const [code] = await ownPulse.within(EXIT_BEATS, exited)
    findings.expect('L3', code === 0, () => `the process exited with code ${code}`)
  } catch (error) {
    findings.expect('L3', false, () => `the process does not end after its server was closed: ${error}`)
  } finally {
    child.kill('SIGKILL')
  }
}

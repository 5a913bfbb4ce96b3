import { fork } from 'node:child_process'
import { join } from 'node:path'
import type { Check } from './checks.js'
import type { Report } from './layer.js'
import type { LayerName } from './layers.js'
import { processorSecondsOf } from './limits/processor-time.js'
import { beatsIn, ownPulse } from './limits/pulse.js'

export interface Run {
  readonly layer: LayerName
  readonly scale: number
  readonly seed: number
  readonly until?: Check | undefined
  readonly on?: string | undefined
}

/** A layer that hangs is itself a finding: one that works without an end has used so much of the processor. */
const mostProcessorSeconds = (scale: number) => 600 + scale * 60 * 60
/** One that waits without an end. What others are waited for has a limit of its own, so this one may be long. */
const mostBeats = (scale: number) => beatsIn(12 * 60_000 + scale * 120 * 60_000)
const LOOK_BEATS = beatsIn(5_000)
const LAST_WORDS = 4_000

/**
 * Runs a layer in a process of its own, with the library that is built in `root`; rejects when the process ends without a
 * report, or does not end behind it.
 */
export async function runLayer(
  { layer, scale, seed, until, on }: Run,
  root: string,
  onProgress: (share: number) => void = () => {},
): Promise<Report> {
  const program = join(root, 'build/proof/run-layer.js')
  const child = fork(program, [layer, `${scale}`, `${seed}`, until ?? '', on ?? ''], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: ['--expose-gc', '--enable-source-maps'],
    // What surrounds it (a test runner, npm) is not its business.
    env: Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(vitest|node_options|node_v8)/i.test(name)),
    ),
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes: Buffer) => {
      said = `${said}${bytes}`.slice(-LAST_WORDS)
    })
  }
  let report: Report | undefined
  child.on('message', (message: { progress?: number; report?: Report }) => {
    if (message.progress !== undefined) onProgress(message.progress)
    report ??= message.report
  })
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const lastBeat = ownPulse.beats + mostBeats(scale)
  let end: number | string | null = null
  while (end === null) {
    end = await ownPulse.within(LOOK_BEATS, ended).catch(() => null)
    const seconds = end === null ? await processorSecondsOf(child.pid as number) : 0
    if (seconds > mostProcessorSeconds(scale) || ownPulse.beats > lastBeat) child.kill('SIGKILL')
  }
  if (report !== undefined && end === 0) return report
  const what = report === undefined ? 'without a report' : 'badly behind its report'
  throw new Error(`${layer} (scale ${scale}, seed ${seed}) ended ${what}: ${end}\n${said}`)
}

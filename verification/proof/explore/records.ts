import { machine } from 'once-per-key/core'
import type { Command, Reply } from './history.js'

/** What the store holds. */
export type Records = Map<string, machine.StoredRecord>

/** The real machine, on the record under this key. */
export function execute(records: Records, key: string, command: Command, now: number): Reply {
  const step = stepOf(records.get(key) ?? null, command, now)
  if (step.record === null) records.delete(key)
  else records.set(key, step.record)
  return step.reply
}

function stepOf(record: machine.StoredRecord | null, command: Command, now: number): machine.Change<Reply> {
  switch (command.name) {
    case 'begin':
      return machine.begin(record, command.claim, now)
    case 'renew':
      return machine.renew(record, command.own, now)
    case 'complete':
      return machine.complete(record, command.own, now)
    case 'release':
      return machine.release(record, command.own, now)
    case 'step':
      return machine.step(record, command.own, now)
  }
}

import type { ListedRecord, ListedRecords } from '../../src/core/index.js'
import { type ClusterNode, runScript } from './client.js'
import { parseListedRecord, parseScanReply } from './reply.js'
import type { Script } from './scripts.js'

export interface ListedRange {
  /** Shows a record, or says that it is not listed. */
  readonly script: Script
  /** The beginning of the keys; all if absent. */
  readonly keyStart?: string
}

/** About how many keys a step scans: a few milliseconds of the server's time, in pieces of some microseconds. */
const KEYS_A_STEP = 200

/**
 * One step of a walk through all keys of a prefix, one server after the other. The next step is identified by the
 * server's name and SCAN's cursor: a server that has disappeared is skipped, and its replacement is walked if its name
 * sorts later.
 */
export async function listRecords(
  nodes: readonly ClusterNode[],
  prefix: string,
  from: string | null,
  { script, keyStart = '' }: ListedRange,
): Promise<ListedRecords> {
  const [name = '', cursor = '0'] = from === null ? [] : from.split(' ')
  const at = nodes.findIndex((node) => node.name >= name)
  const node = nodes[at]
  if (node === undefined) return { records: [], next: null }

  // By comparing names, because in a cluster the next server may have disappeared.
  const begun = node.name === name ? cursor : '0'
  const before = node.keyPrefix + prefix
  const pattern = `${(before + keyStart).replace(/[\\*?[\]^-]/g, '\\$&')}*`
  const scan = ['SCAN', begun, 'MATCH', pattern, 'COUNT', `${KEYS_A_STEP}`, 'TYPE', 'string']
  const scanned = parseScanReply(await node.send(pattern, scan))
  const records: ListedRecord[] = []
  const unreadable: string[] = []
  const looking = scanned.keys.map(async (redisKey) => {
    const found = parseListedRecord(await runScript(node.send, script, redisKey.slice(node.added.length), []))
    const key = redisKey.slice(before.length)
    if (found === 'unreadable') unreadable.push(key)
    else if (found !== null) records.push({ key, ...found })
  })
  await Promise.all(looking)
  return { records, next: nextAfter(node, nodes[at + 1], scanned.cursor), ...(unreadable.length > 0 && { unreadable }) }
}

/** SCAN's cursor `0` means the end. */
function nextAfter(node: ClusterNode, next: ClusterNode | undefined, cursor: string): string | null {
  if (cursor !== '0') return `${node.name} ${cursor}`
  return next === undefined ? null : `${next.name} 0`
}

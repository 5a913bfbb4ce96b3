/**
 * The machine (`src/core/record/machine.ts`) in Lua, line by line: same names, same order. Before it, a claim and a completion try what
 * is most frequent. A property test runs the same histories on both.
 */

import { hash } from 'node:crypto'
import { READ_CLOCK, RECORD, RECORD_FUNCTIONS } from './record-format.js'

/** A script's text, and the digest by which a server caches it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

/**
 * The two arguments that an owner sends with each command. The first has what differs from one operation to the next: its
 * parts, with the length of those that may contain anything. The second has durations and a word, one form for all
 * commands: those that a command does not know are 0.
 */
const OWN = `
local attempt, uncertain, token_bytes, from = string.match(ARGV[1], '^(%d+) ([01]) (%d+) ()')
local token = string.sub(ARGV[1], from, from + token_bytes - 1)
local fingerprint = string.sub(ARGV[1], from + token_bytes)
attempt, uncertain = tonumber(attempt), uncertain == '1'
local lease_ms, retention_ms, failed_ms, unknown_outcome = string.match(ARGV[2], '^(%S+) (%S+) (%S+) (%S+)$')
lease_ms, retention_ms, failed_ms = tonumber(lease_ms), tonumber(retention_ms), tonumber(failed_ms)
`

const CLAIMED = `
local function claimed(attempt, uncertain, steps)
  local lease_until = now + lease_ms
  return {
    state = 'in-flight', token = token, fingerprint = fingerprint, attempt = attempt, uncertain = uncertain,
    lease_until = lease_until, steps = steps
  }
end

local function extended(record)
  record.lease_until = now + lease_ms
  return record
end
`

/**
 * Redis 7 brought this version number and script flags. On an older server only claims would work: a payment would be
 * made and never recorded.
 */
const SUPPORTED = `
if not redis.REDIS_VERSION_NUM then
  return redis.error_reply('UNSUPPORTED the store needs Redis 7 or later, or Valkey')
end
`

/**
 * Most claims find no record. They end here, before the script defines what reads any record: with `COMPLETE_CLAIM`, a first request
 * takes Redis a quarter less CPU time. If Redis refuses the SET, for example for lack of memory, there may still be a record to show.
 */
const CREATE_CLAIM = `
local claim = '1' .. cmsgpack.pack({ 'in-flight', token, fingerprint, 1, false, now + lease_ms })
local set = redis.pcall('SET', key, claim, 'NX', 'PX', retention_ms)
if set and not set.err then return { 1, 1, 0 } end
`

/**
 * Without flags, so that under `maxmemory` refusals and replays, which write nothing, still work: only the SET of a new
 * claim fails.
 */
export const BEGIN = createScript(`${SUPPORTED}${READ_CLOCK}${OWN}${CREATE_CLAIM}${RECORD_FUNCTIONS}${CLAIMED}
local WAS_NONE, WAS_FAILED, WAS_UNKNOWN = 0, 1, 2

local function previous_outcome(attempt, uncertain)
  if uncertain then return WAS_UNKNOWN end
  return attempt > 1 and WAS_FAILED or WAS_NONE
end

local ACQUIRED = 1

local function acquired(attempt, uncertain, steps)
  local reply = { ACQUIRED, attempt, previous_outcome(attempt, uncertain) }
  for i = 1, #(steps or {}), STEP_FIELDS do
    if steps[i + 1] ~= 'undone' then
      local n = #reply
      reply[n + 1], reply[n + 2] = steps[i], steps[i + 1]
      reply[n + 3], reply[n + 4] = steps[i + 3] and 1 or 0, steps[i + 3] or ''
    end
  end
  return reply
end

local function acquire(attempt, uncertain, steps)
  write(claimed(attempt, uncertain, steps), retention_ms)
  return acquired(attempt, uncertain, steps)
end

local function acquire_again(record)
  write(extended(record), retention_ms)
  return acquired(record.attempt, record.uncertain, record.steps)
end

local function refuse(record)
  return shown(record, fingerprint)
end

local function take_over(record)
  if unknown_outcome == 'refuse' and not record.rerun then return refuse(record) end
  return acquire(record.attempt + 1, true, handed_over(record.steps))
end

local record = read()
if not record then return acquire(1, false) end

if record.token == token then
  if record.state == 'in-flight' then return acquire_again(record) end
  return refuse(record)
end

if record.state == 'completed' then
  return refuse(record)
elseif record.state == 'in-flight' then
  if record.fingerprint ~= fingerprint then return refuse(record) end
  if now < record.lease_until then return refuse(record) end
  return take_over(record)
else
  if not record.uncertain then return acquire(record.attempt + 1, false) end
  if record.fingerprint ~= fingerprint then return refuse(record) end
  return take_over(record)
end
`)

/** `renew`, `complete`, `resolve` and `forget` must work even when `maxmemory` is reached. */
export const ALLOW_OOM = `#!lua flags=allow-oom
`

export const DONE = `
local OK = 1

local RESTORED = 2

local function stale(record, asker)
  return shown(record, asker)
end
`

/** The arguments of an answer: its head, and its body. */
export const ANSWER = `
local function answer_of(head, body)
  local status, kept, message_bytes, from = string.match(head, '^(%d+) ([01]) (%d+) ()')
  return {
    status = tonumber(status), status_message = string.sub(head, from, from + message_bytes - 1),
    headers = string.sub(head, from + message_bytes), kept = kept == '1', body = body
  }
end
`

export const RENEW = createScript(`${ALLOW_OOM}${RECORD}${OWN}${DONE}${CLAIMED}
local record = read()
if not record then
  write(claimed(attempt, uncertain), retention_ms)
  return RESTORED
end
if record.token ~= token or record.state ~= 'in-flight' then return stale(record, fingerprint) end
write(extended(record), retention_ms)
return OK
`)

/**
 * Most completions find the claim of their owner, without steps. They end here, too. Whatever is not exactly such a claim is left to the
 * rest of the script.
 */
const COMPLETE_CLAIM = `
local claim = redis.call('GETRANGE', KEYS[1], 0, 4095)
local intact, rest, fields = pcall(cmsgpack.unpack_one, claim, 1)
local is_whole = intact and rest == -1 and #claim < 4096 and string.sub(claim, 1, 1) == '1'
if is_whole and type(fields) == 'table' and #fields == 6 and fields[1] == 'in-flight' and fields[2] == token then
  local claimed_fingerprint, claimed_attempt = fields[3], fields[4]
  local is_typed = type(claimed_fingerprint) == 'string' and type(claimed_attempt) == 'number'
  if is_typed and type(fields[5]) == 'boolean' and type(fields[6]) == 'number' then
    local completed = {
      'completed', token, claimed_fingerprint, claimed_attempt,
      answer.status, answer.status_message, answer.headers, answer.kept, #answer.body
    }
    redis.call('SET', KEYS[1], '1' .. cmsgpack.pack(completed) .. answer.body, 'PX', retention_ms)
    return 1
  end
end
`

export const COMPLETE = createScript(`${ALLOW_OOM}${OWN}${ANSWER}
local answer = answer_of(ARGV[3], ARGV[4])
${COMPLETE_CLAIM}${RECORD}${DONE}
local record = read()
if record then
  if record.token ~= token or record.state == 'failed' then return stale(record, fingerprint) end
  if record.state == 'completed' then return OK end
  fingerprint, attempt = record.fingerprint, record.attempt
end
write({ state = 'completed', token = token, fingerprint = fingerprint, attempt = attempt, answer = answer }, retention_ms)
return OK
`)

/**
 * With the flag, because what a step has done must be recorded even when `maxmemory` is reached. The label and the state
 * are in the third argument, the result, if it is kept, is the fourth.
 */
export const RECORD_STEP = createScript(`${ALLOW_OOM}${RECORD}${OWN}${DONE}${CLAIMED}
local order, state, label = string.match(ARGV[3], '^(%d+) (%a+) (.*)$')
order = tonumber(order)
local result = state == 'done' and ARGV[4] or false

local record = read()
if not record then
  write(claimed(attempt, uncertain, { label, state, order, result }), retention_ms)
  return RESTORED
end
if record.token ~= token or record.state == 'failed' then return stale(record, fingerprint) end
if record.state == 'completed' then
  if state == 'begun' then return stale(record, fingerprint) end
  return OK
end
local steps = record.steps or {}
local at = #steps + 1
for i = 1, #steps, STEP_FIELDS do
  if steps[i] == label then
    if steps[i + 2] > order then return OK end
    if steps[i + 1] == 'done' then return OK end
    at = i
  end
end
steps[at], steps[at + 1], steps[at + 2], steps[at + 3] = label, state, order, result
record.steps = steps
write(extended(record), retention_ms)
return OK
`)

/**
 * Without flags. When `maxmemory` is reached, it can still replace an existing record (after DEL, Redis lets a script
 * finish). It cannot add a fence for a claim that was refused for lack of memory: such fences could grow without bound.
 * If that claim arrives late after all, its lease ends it.
 */
export const RELEASE = createScript(`${RECORD}${OWN}${DONE}
local record = read()
local steps
if record then
  if record.token ~= token or record.state == 'completed' then return stale(record, fingerprint) end
  if record.state == 'failed' then return OK end
  steps = record.steps
  fingerprint, attempt, uncertain = record.fingerprint, record.attempt, uncertain or record.uncertain
  redis.call('DEL', key)
end
if not uncertain then fingerprint = '' end
local expires_ms = uncertain and retention_ms or failed_ms
local tombstone = { state = 'failed', token = token, fingerprint = fingerprint, attempt = attempt, uncertain = uncertain }
if uncertain then tombstone.steps = steps end
local written, problem = pcall(write, tombstone, expires_ms)
if not written then
  local reason = type(problem) == 'table' and problem.err or tostring(problem)
  if uncertain or not string.find(reason, 'OOM', 1, true) then error(problem) end
end
return OK
`)

export function createScript(text: string): Script {
  return { text, sha1: hash('sha1', text, 'hex') }
}

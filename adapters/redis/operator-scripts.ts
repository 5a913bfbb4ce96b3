/** What operators send, in Lua as in `scripts.ts`: requests do without it. */

import { RECORD } from './record-format.js'
import { ALLOW_OOM, ANSWER, createScript, DONE } from './scripts.js'

const NONE = `
local NONE = 0
`

/** The flag makes Redis enforce that nothing is written. */
export const INSPECT = createScript(`#!lua flags=no-writes
${RECORD}${NONE}
local record = read()
if not record then return NONE end
local reply = shown(record)
if record.state ~= 'completed' then
  local labels = { record.rerun and 1 or 0 }
  for i = 1, #(record.steps or {}), STEP_FIELDS do
    if record.steps[i + 1] ~= 'undone' then
      local n = #labels
      labels[n + 1], labels[n + 2] = record.steps[i], record.steps[i + 1]
    end
  end
  if #labels > 1 or record.rerun then reply[#reply + 1] = labels end
end
return reply
`)

const IS_UNKNOWN = `
local function is_unknown(record)
  if record.state == 'in-flight' then return now >= record.lease_until end
  return record.state == 'failed' and record.uncertain
end
`

/** For a walk through all keys: what cannot be read is passed over. */
export const UNKNOWN = createScript(`#!lua flags=no-writes
${RECORD}${NONE}${IS_UNKNOWN}
local readable, record = pcall(read)
if not readable or not record or not is_unknown(record) then return NONE end
return { redis.call('PTTL', key), shown(record) }
`)

export const RESOLVE = createScript(`${ALLOW_OOM}${RECORD}${NONE}${ANSWER}
local token, attempt, retention_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local rerun = ARGV[4] == 'rerun'
local answer = not rerun and ARGV[4] and answer_of(ARGV[4], ARGV[5])
${DONE}${IS_UNKNOWN}
local record = read()
if not record then return NONE end
if record.token == token and record.state ~= 'in-flight' then return OK end
if record.attempt ~= attempt or not is_unknown(record) then return stale(record) end

local expires_ms = math.max(redis.call('PTTL', key), retention_ms)
if rerun then
  write({
    state = 'failed', token = token, fingerprint = record.fingerprint, attempt = attempt, uncertain = true, rerun = true,
    steps = handed_over(record.steps)
  }, expires_ms)
elseif not answer then
  write({ state = 'failed', token = token, fingerprint = '', attempt = attempt, uncertain = false }, expires_ms)
else
  local completed = { state = 'completed', token = token, fingerprint = record.fingerprint, attempt = attempt }
  completed.answer = answer
  write(completed, expires_ms)
end
return OK
`)

/** For a walk through a scope: all but the answer, which is shown only if nothing of it is kept. */
export const LISTED = createScript(`#!lua flags=no-writes
${RECORD}${NONE}
local readable, record = pcall(read)
if not readable then return -1 end
if not record then return NONE end
local answer = record.answer
local is_forgotten = answer and not answer.kept and answer.headers == '[]' and answer.status_message == ''
return { redis.call('PTTL', key), shown(record, not is_forgotten and '') }
`)

export const FORGET = createScript(`${ALLOW_OOM}${RECORD}${NONE}
local state, attempt, fingerprint, removes = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4] == '1'
${DONE}
local function is_same(record)
  return record.state == state and record.attempt == attempt and record.fingerprint == fingerprint
end

local function is_settled(record)
  return record.state == 'completed' or (record.state == 'failed' and not record.uncertain)
end

local record = read()
if not record then return NONE end
if not is_same(record) or not is_settled(record) then return stale(record, '') end
if removes then
  redis.call('DEL', key)
elseif record.state == 'completed' then
  record.answer = { status = 200, status_message = '', headers = '[]', kept = false, body = '' }
  write(record)
end
return OK
`)

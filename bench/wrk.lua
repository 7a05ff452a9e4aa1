-- Sends plants with random 64-bit ids; prints what wrk measured as one line of JSON.
local ffi = require("ffi")

-- From the environment: command lines are visible to everybody on the machine.
local token = os.getenv("BENCH_TOKEN")
local serial = 0

function setup(thread)
  serial = serial + 1
  thread:set("seed", os.time() * 100 + serial)
end

function init()
  math.randomseed(seed)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  if token then
    wrk.headers["Authorization"] = "Bearer " .. token
  end
end

function request()
  local high = ffi.new("int64_t", math.random(-2147483648, 2147483647))
  local id = tostring(high * 4294967296LL + math.random(0, 4294967295)):sub(1, -3)
  return wrk.format(nil, nil, nil, '{"id":' .. id .. ',"name":"Equisetum fluviatile","tag":"Equisetum"}')
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p90":%d,"p99":%d,"max":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.timeout, errors.status
  ))
end

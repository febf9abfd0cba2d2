-- churn.lua: a new connection for each request, or after a number of requests.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/churn.lua URL -- kept=1 [host=NAME]
--
-- kept: requests on one connection; the last one has "Connection: close". https:// URLs measure handshakes.
-- wrk reconnects at once. Local ports in TIME_WAIT are the limit of long runs: sysctl net.ipv4.tcp_tw_reuse=1.

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("churn")

local open, last, kept, sent = nil, nil, 1, 0

function init(arguments)
   local options = figures.options(arguments, { kept = 1, host = "" })
   kept = options.kept
   local headers = {}
   if options.host ~= "" then headers["Host"] = options.host end
   open = wrk.format("GET", nil, headers)
   headers["Connection"] = "close"
   last = wrk.format("GET", nil, headers)
end

function request()
   sent = sent % kept + 1
   return sent == kept and last or open
end

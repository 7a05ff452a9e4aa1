import java.net.http.*;
class StorePlant { // A BigInteger is exact; a double would round the id.
  public static void main(String[] args) throws Exception {
    if (args.length < 2 || args.length > 3 || !args[0].matches("-?(0|[1-9][0-9]*)") || args[1].isEmpty()) throw new RuntimeException("Usage: StorePlant.java ID NAME [TAG]");
    if (System.getenv("PLANT_STORE_TOKEN") == null) throw new RuntimeException("Set PLANT_STORE_TOKEN.");
    var plant = new com.fasterxml.jackson.databind.ObjectMapper().createObjectNode().put("id", new java.math.BigInteger(args[0])).put("name", args[1]);
    if (args.length > 2) plant.put("tag", args[2]);
    var request = HttpRequest.newBuilder(java.net.URI.create(System.getenv().getOrDefault("PLANT_STORE_URL", "http://127.0.0.1:3000").replaceFirst("/?$", "/plants"))).POST(HttpRequest.BodyPublishers.ofString(plant.toString()))
        .headers("Authorization", "Bearer " + System.getenv("PLANT_STORE_TOKEN").strip(), "Content-Type", "application/json").build();
    for (var attempt = 1; attempt <= 10; attempt++) { // After a time-out, the same plant again, never another id.
      var response = HttpClient.newHttpClient().sendAsync(request, HttpResponse.BodyHandlers.ofString()).orTimeout(10, java.util.concurrent.TimeUnit.SECONDS).exceptionally(e -> null).join();
      var again = response == null || response.statusCode() == 429 || response.statusCode() == 503;
      var result = new com.fasterxml.jackson.databind.ObjectMapper().readTree(again || !response.body().matches("(?s)\\s*\\{.*\\}\\s*") ? "{}" : response.body());
      if (!again && response.statusCode() == 200 && result.path("name").asText().equals(args[1])) return;
      if (!again) throw new RuntimeException(result.path("error").asInt() == 40006 ? "The id is taken." : response + " " + response.body());
      Thread.sleep(1000 * (response == null ? 1 : response.headers().firstValue("Retry-After").filter(it -> it.matches("\\d+")).map(Long::valueOf).orElse(1L)));
    }
    throw new RuntimeException("The Plant Store does not respond.");
  }
}
